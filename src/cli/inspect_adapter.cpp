#include "cli/inspect_adapter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/json.h"
#include "cli/common.h"
#include "cli/table.h"
#include "formats/adapters/fit_adapter.h"
#include "formats/file_set_native.h"

namespace doppler::cli {
namespace {

using formats::AdaptedTensor;
using formats::Adapter;

// "q_proj" of "model.layers.3.self_attn.q_proj".
std::string kind_of(const std::string& tensor) { return tensor.substr(tensor.rfind('.') + 1); }

struct Kind {
  uint32_t count = 0, least_rank = UINT32_MAX, most_rank = 0;
  float least_scale = INFINITY, most_scale = -INFINITY;
};

std::map<std::string, Kind> kinds_of(const Adapter& adapter) {
  std::map<std::string, Kind> out;
  for (const AdaptedTensor& tensor : adapter.tensors) {
    Kind& kind = out[kind_of(tensor.tensor)];
    ++kind.count;
    kind.least_rank = std::min(kind.least_rank, tensor.rank);
    kind.most_rank = std::max(kind.most_rank, tensor.rank);
    kind.least_scale = std::min(kind.least_scale, tensor.scale);
    kind.most_scale = std::max(kind.most_scale, tensor.scale);
  }
  return out;
}

std::string range_text(double least, double most) {
  return least == most ? format_text("%g", least) : format_text("%g to %g", least, most);
}

uint64_t count_if(const Adapter& adapter, bool (*has)(const AdaptedTensor&)) {
  return static_cast<uint64_t>(std::ranges::count_if(adapter.tensors, has));
}

Json adapter_json(const Adapter& adapter, const std::string& base) {
  Json kinds = Json::object();
  for (const auto& [name, kind] : kinds_of(adapter)) {
    kinds[name] = {{"count", kind.count},
                   {"rank", Json::array({kind.least_rank, kind.most_rank})},
                   {"scale", Json::array({kind.least_scale, kind.most_scale})}};
  }
  Json replaced = Json::array();
  for (const auto& tensor : adapter.replaced) replaced.push_back(tensor.tensor);
  return {{"adapter", adapter.name},
          {"format", adapter.gguf_names ? "gguf" : "peft"},
          {"base", adapter.base},
          {"rank", adapter.rank()},
          {"parameters", adapter.numbers()},
          {"matrices", std::move(kinds)},
          {"dora", count_if(adapter, [](const AdaptedTensor& t) { return !t.magnitude.empty(); })},
          {"biases", count_if(adapter, [](const AdaptedTensor& t) { return !t.bias.empty(); })},
          {"replaced", std::move(replaced)},
          {"invocation_tokens", adapter.invocation_tokens},
          {"fits", base.empty() ? Json(nullptr) : Json(base)}};
}

void print_text(const Adapter& adapter, const std::string& base) {
  std::printf("%s: %s adapter (LoRA) of rank %u, %llu parameters%s%s\n",
              printable(adapter.name, 4096).c_str(), adapter.gguf_names ? "GGUF" : "PEFT", adapter.rank(),
              static_cast<unsigned long long>(adapter.numbers()), adapter.base.empty() ? "" : ", made for ",
              printable(adapter.base).c_str());
  Table table({"Matrices", ">count", ">rank", ">scale"});
  for (const auto& [name, kind] : kinds_of(adapter)) {
    table.add({printable(name), std::to_string(kind.count), range_text(kind.least_rank, kind.most_rank),
               range_text(double{kind.least_scale}, double{kind.most_scale})});
  }
  if (!table.empty()) std::printf("\n%s", table.text().c_str());
  const auto say = [](uint64_t count, const char* what) {
    if (count != 0) std::printf("\n%llu of them have %s.\n", static_cast<unsigned long long>(count), what);
  };
  say(count_if(adapter, [](const AdaptedTensor& t) { return !t.magnitude.empty(); }), "magnitudes (DoRA)");
  say(count_if(adapter, [](const AdaptedTensor& t) { return !t.bias.empty(); }), "a bias");
  if (!adapter.replaced.empty()) {
    Table replaced({"Replaced tensors", ">numbers"});
    for (const auto& tensor : adapter.replaced) {
      replaced.add({printable(tensor.tensor), std::to_string(tensor.values.size())});
    }
    std::printf("\n%s", replaced.text().c_str());
  }
  if (!adapter.invocation_tokens.empty()) {
    std::printf("\nIt is in force from the last place on where %zu tokens of the prompt invoke it.\n",
                adapter.invocation_tokens.size());
  }
  if (!base.empty()) std::printf("\nIt fits %s.\n", printable(base, 4096).c_str());
}

}  // namespace

Result<void> print_adapter(const std::string& path, const std::string& base, bool json) {
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(path));
  DP_TRY(const Adapter adapter, run_now(formats::open_adapter(std::move(files))));
  if (!base.empty()) {
    DP_TRY(const std::unique_ptr<formats::Checkpoint> model, open_named_checkpoint(base, ""));
    DP_TRY(const formats::ModelConfig config, formats::read_config(*model));
    DP_TRY([[maybe_unused]] const formats::FittedAdapter fitted, formats::fit_adapter(adapter, config));
  }
  if (json) {
    std::printf("%s\n", to_text(adapter_json(adapter, base), 2).c_str());
  } else {
    print_text(adapter, base);
  }
  return {};
}

}  // namespace doppler::cli
