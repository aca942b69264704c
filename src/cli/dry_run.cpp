#include "cli/dry_run.h"

#include <cstdio>

#include "base/json.h"
#include "cli/table.h"
#include "engine/device_plan_native.h"
#include "engine/estimate_native.h"
#include "gpu/device_list.h"

namespace doppler::cli {
namespace {

struct DryRun {
  std::string name, kv;
  gpu::Caps caps;
  model::LoadEstimate estimate;
  Result<void> fits = {};
  // If the layers lie on several devices: each one's share.
  struct Share {
    std::string adapter;
    uint64_t memory_bytes = 0;
    model::SplitShare share;
  };
  std::vector<Share> shares = {};
};

Result<DryRun> look(const ModelFlags& flags) {
  DryRun out;
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint,
         open_named_checkpoint(flags.model, flags.synthetic));
  DP_TRY(const std::vector<gpu::DeviceOptions> named,
         gpu::each_device({.provider = flags.load.webgpu, .adapter = flags.load.device, .cache_dir = {}}));
  std::vector<std::unique_ptr<gpu::Device>> devices;
  std::vector<const gpu::Caps*> caps;
  for (const gpu::DeviceOptions& device : named) {
    DP_TRY(std::unique_ptr<gpu::Device> opened, run_now(gpu::Device::open(device)));
    caps.push_back(&devices.emplace_back(std::move(opened))->caps());
  }
  out.name = checkpoint->name();
  out.caps = *caps[0];
  DP_CHECK(engine::check_split_mode(flags.load.split_mode, caps.size()));
  std::optional<model::SplitPlan> split;
  if (caps.size() > 1) {
    DP_TRY(split, engine::plan_devices(*checkpoint, flags.load, caps));
  }
  for (size_t i = 0; split && i < caps.size(); ++i) {
    out.shares.push_back({caps[i]->adapter, caps[i]->memory_bytes, split->shares[i]});
  }
  DP_TRY(out.estimate, engine::estimate_load(*checkpoint, flags.load, out.caps));
  out.kv = kernels::cache_format_name(out.estimate.cache_format);
  if (!split) out.fits = model::check_memory(out.estimate.memory, out.caps, out.estimate.ctx_len);
  return out;
}

// The share of each device.
Json shares_json(const DryRun& dry) {
  Json out = Json::array();
  for (const auto& [adapter, memory_bytes, share] : dry.shares) {
    out.push_back({{"adapter", adapter},
                   {"memory_bytes", memory_bytes ? Json(memory_bytes) : Json()},
                   {"first_layer", share.layers.first},
                   {"layers", share.layers.end - share.layers.first},
                   {"weight_bytes", share.memory.weight_bytes},
                   {"cache_bytes", share.memory.cache_bytes},
                   {"state_bytes", share.memory.state_bytes},
                   {"scratch_bytes", share.memory.scratch_bytes},
                   {"total_bytes", share.memory.total()}});
  }
  return out;
}

void print_shares(const DryRun& dry) {
  Table table({"Layers", "device", "weights", "cache", "scratch", "total", "of"});
  for (const auto& [adapter, memory_bytes, share] : dry.shares) {
    const model::MemoryEstimate& memory = share.memory;
    table.add({format_text("%u to %u", share.layers.first, share.layers.end - 1), adapter,
               format_bytes(memory.weight_bytes), format_bytes(memory.cache_bytes + memory.state_bytes),
               format_bytes(memory.scratch_bytes), format_bytes(memory.total()),
               memory_bytes ? format_bytes(memory_bytes) : "unknown"});
  }
  std::printf("%s\n%s\nIt fits in %zu parts.\n", printable(dry.name, 4096).c_str(), table.text().c_str(),
              dry.shares.size());
}

void print_json(const DryRun& dry, const bench::UsedPreset& preset) {
  const model::MemoryEstimate& memory = dry.estimate.memory;
  const uint64_t known = dry.caps.memory_bytes;
  Json out = {{"model", dry.name},
              {"ctx_len", dry.estimate.ctx_len},
              {"chunk", dry.estimate.chunk},
              {"kv", dry.kv},
              {"weight_bytes", memory.weight_bytes},
              {"expert_bytes", memory.expert_bytes},
              {"expert_slots", dry.estimate.expert_slots},
              {"adapter_bytes", dry.estimate.adapter_bytes},
              {"layer_table_bytes", memory.layer_table_bytes},
              {"layer_table_on_host", dry.estimate.layer_table_on_host},
              {"cache_bytes", memory.cache_bytes},
              {"cache_buffer_bytes", memory.cache_buffer_bytes},
              {"scratch_bytes", memory.scratch_bytes},
              {"total_bytes", memory.total()},
              {"device",
               {{"adapter", dry.caps.adapter},
                {"provider", dry.caps.provider},
                {"memory_bytes", known ? Json(known) : Json()},
                {"max_buffer_bytes", dry.caps.max_buffer_bytes},
                {"max_binding_bytes", dry.caps.max_binding_bytes}}},
              {"preset", bench::preset_json(preset)},
              {"fits", dry.fits.has_value()},
              {"problem", dry.fits ? Json() : Json(dry.fits.error().sentence())}};
  if (!dry.shares.empty()) out["parts"] = shares_json(dry);
  std::printf("%s\n", to_text(out, 2).c_str());
}

void print(const DryRun& dry) {
  const model::MemoryEstimate& memory = dry.estimate.memory;
  Table table({"Memory on the device", ""});
  table.add({"weights", format_bytes(memory.weight_bytes)});
  if (dry.estimate.expert_slots != 0) {
    table.add(
        {"of them experts", format_text("%s (%u of %u a layer)", format_bytes(memory.expert_bytes).c_str(),
                                        dry.estimate.expert_slots, dry.estimate.config.moe.n_experts)});
  }
  if (dry.estimate.adapter_bytes != 0) {
    table.add({"of them adapters", format_bytes(dry.estimate.adapter_bytes)});
  }
  if (memory.layer_table_bytes != 0) {
    table.add(
        {"of them embeddings of each layer",
         format_bytes(memory.layer_table_bytes) +
             (dry.estimate.layer_table_on_host ? " (a step's rows; the table stays in the file)" : "")});
  }
  table.add(
      {"cache", format_text("%s (%u tokens, %s%s; buffers of %s)", format_bytes(memory.cache_bytes).c_str(),
                            dry.estimate.ctx_len, dry.kv.c_str(), ring_text(memory).c_str(),
                            format_bytes(memory.cache_buffer_bytes).c_str())});
  table.add({"scratch", format_text("about %s (prefill in chunks of %u)",
                                    format_bytes(memory.scratch_bytes).c_str(), dry.estimate.chunk)});
  table.add({"total", format_bytes(memory.total())});
  std::printf("%s\n%s\n%s has %s, in buffers of at most %s, bound %s at a time\n",
              printable(dry.name, 4096).c_str(), table.text().c_str(), dry.caps.adapter.c_str(),
              dry.caps.memory_bytes ? format_bytes(dry.caps.memory_bytes).c_str() : "memory of unknown size",
              format_bytes(dry.caps.max_buffer_bytes).c_str(),
              format_bytes(dry.caps.max_binding_bytes).c_str());
  if (dry.fits) {
    std::printf("It fits%s.\n", dry.caps.memory_bytes ? "" : " as far as the device tells");
  }
}

}  // namespace

std::string ring_text(const model::MemoryEstimate& memory) {
  return memory.ring_bytes == 0 ? "" : format_text(", %u of layers with a window", memory.ring_len);
}

int dry_run(const ModelFlags& flags, bool json) {
  auto dry = look(flags);
  if (!dry) return exit_failed(dry.error());
  if (json) {
    print_json(*dry, flags.preset.used);
  } else if (!dry->shares.empty()) {
    print_shares(*dry);
  } else {
    print(*dry);
  }
  return dry->fits ? 0 : exit_failed(dry->fits.error());
}

}  // namespace doppler::cli
