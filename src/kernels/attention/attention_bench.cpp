// Times every variant of attention that the device takes, on the shapes of real models: GPU timestamps, the
// least of some repetitions, a dispatch each in a pass of its own. Run by hand: attention_bench [PART OF A NAME],
// such as "8B skinny" or "matrix"; DOPPLER_WEBGPU and DOPPLER_DEVICE choose the device. Figures belong to a named
// device: it is printed first.
#include <chrono>
#include <cstdio>

#include "kernels/attention/attention_case.h"
#include "kernels/linear/linear.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kRepetitions = 20;
// While random keys are made a GPU's clocks fall, and its attention takes four times as long.
constexpr std::chrono::milliseconds kWarmUp(700);

struct BenchShape {
  const char* name;
  uint32_t n_heads, n_kv_heads, head_dim;
  uint32_t
      rows;  // 1: decode; up to kMaxSkinnyRows or kMaxNarrowRows: a plan for that many, replayed with these
  std::vector<uint32_t> positions;
};

// The last position of each list sizes the cache.
const BenchShape kShapes[] = {
    {"small decode", 8, 2, 64, 1, {127, 999}},
    {"1B decode", 32, 8, 64, 1, {127, 1023, 8191}},
    {"3B decode", 24, 8, 128, 1, {127, 1023, 8191}},
    {"8B decode", 32, 8, 128, 1, {127, 1023, 8191}},
    {"small skinny 2", 8, 2, 64, 2, {999}},
    {"1B skinny 2", 32, 8, 64, 2, {127, 1023, 8191}},
    {"1B skinny 8", 32, 8, 64, 8, {127, 1023, 8191}},
    {"1B skinny 16", 32, 8, 64, 16, {127, 1023, 8191}},
    {"8B skinny 2", 32, 8, 128, 2, {127, 1023, 8191}},
    {"8B skinny 8", 32, 8, 128, 8, {127, 1023, 8191}},
    {"8B skinny 16", 32, 8, 128, 16, {127, 1023, 8191}},
    {"8B narrow 32", 32, 8, 128, 32, {127, 1023, 8191}},
    {"8B narrow 64", 32, 8, 128, 64, {127, 1023, 8191}},
    {"small prefill", 8, 2, 64, 128, {0}},
    {"1B prefill", 32, 8, 64, 512, {0}},
    {"8B prefill", 32, 8, 128, 512, {0, 15872}},
    {"gemma prefill", 4, 1, 256, 512, {0, 4096}},
};

bool is_skinny(const BenchShape& shape) { return shape.rows > 1 && shape.rows <= kMaxNarrowRows; }
uint32_t plan_rows(const BenchShape& shape) {
  if (!is_skinny(shape)) return shape.rows;
  return shape.rows <= kMaxSkinnyRows ? kMaxSkinnyRows : kMaxNarrowRows;
}

void warm_up(const KernelRun& run, uint32_t rows) {
  const gpu::Work work{.plan = &run.plan(), .rows = rows, .times = 16};
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + kWarmUp) {
    if (!device().submit({&work, 1}) || !gpu::run_to_completion(device(), device().idle())) return;
  }
}

void time_variant(const BenchShape& shape, std::string_view operation, std::string_view variant) {
  const AttentionCase c{.n_heads = shape.n_heads,
                        .n_kv_heads = shape.n_kv_heads,
                        .head_dim = shape.head_dim,
                        .ctx_len = shape.positions.back() + shape.rows};
  const uint32_t max_rows = plan_rows(shape);
  AttentionData data(c, max_rows);
  Policy policy;
  policy.forced[std::string(operation)] = variant;
  KernelRun run(policy, max_rows);
  const auto [op, y] = data.bind(run);
  if (!run.record([&](Context& ctx) { return record_attention(ctx, op, y); })) return;
  for (const uint32_t pos : shape.positions) {
    run.state.pos = pos;
    run.replay(shape.rows);
    warm_up(run, shape.rows);
    uint64_t least = UINT64_MAX;
    std::string parts;
    for (uint32_t i = 0; i < kRepetitions; ++i) {
      const auto times = gpu::run_to_completion(device(), device().time_commands(run.plan(), shape.rows));
      if (!times) return void(std::printf("%s\n", times.error().message().c_str()));
      uint64_t sum = 0;
      for (const uint64_t time : *times) sum += time;
      if (sum >= least) continue;
      least = sum;
      parts.clear();
      for (const uint64_t time : *times) parts += format_text(" %.1f", static_cast<double>(time) / 1e3);
    }
    std::printf("%-14s at %5u  %-34s %8.1f us  (%s )\n", shape.name, pos, std::string(variant).c_str(),
                static_cast<double>(least) / 1e3, parts.c_str());
    std::fflush(stdout);
  }
}

// Decode steps of several sequences: each row of a slot of its own. Wall clock of the attention of some layers,
// each with a cache of its own.
struct StreamsShape {
  const char* name;
  uint32_t n_heads, n_kv_heads, head_dim, slots;
};
constexpr StreamsShape kStreams[] = {
    {"8B streams 4", 32, 8, 128, 4},   {"8B streams 8", 32, 8, 128, 8},   {"8B streams 16", 32, 8, 128, 16},
    {"8B streams 32", 32, 8, 128, 32}, {"8B streams 64", 32, 8, 128, 64}, {"1B streams 32", 32, 8, 64, 32},
};
constexpr uint32_t kBlockLen = 32, kPosition = 543, kContext = 640;
constexpr uint32_t kDispatches = 64;  // of attention, in a repetition
// Layers whose keys and values are more than the caches of any GPU hold.
constexpr uint32_t kSlotLayers = 64, kLeastLayers = 4;

void time_streams(const StreamsShape& shape) {
  const uint32_t layers = std::max(kSlotLayers / shape.slots, kLeastLayers);
  const uint32_t replays = kDispatches / layers;
  KernelRun run({}, shape.slots);
  const StepTables tables = {
      .sequences = shape.slots, .rows = shape.slots, .blocks = kContext / kBlockLen, .block_len = kBlockLen};
  TablesImage image(tables);
  image.state().rows = image.state().single_rows = shape.slots;
  // Blocks that follow each other in a text do not in the pool.
  std::vector<uint32_t> blocks(size_t{tables.sequences} * tables.blocks);
  for (uint32_t slot = 0; slot < shape.slots; ++slot) {
    image.row(slot) = {slot, kPosition};
    for (uint32_t i = 0; i < tables.blocks; ++i)
      blocks[size_t{slot} * tables.blocks + i] = i * shape.slots + slot;
  }
  std::memcpy(image.bytes.data() + tables.blocks_table(), blocks.data(), blocks.size() * 4);
  const uint64_t row = uint64_t{shape.n_heads} * shape.head_dim;
  const TensorView state = run.inout(image.bytes);
  const TensorView q = run.input(std::vector<float>(shape.slots * row, 0.25f));
  const TensorView y = run.output(shape.slots * row * 4);
  const TensorView q8 = run.output(q8_bytes(shape.slots, static_cast<uint32_t>(row)));
  Attention op{.q = q, .n_heads = shape.n_heads, .scale = 0.1f, .single_rows = shape.slots};
  op.cache = {.n_kv_heads = shape.n_kv_heads,
              .ctx_len = kContext,
              .head_dim = shape.head_dim,
              .blocks = static_cast<uint32_t>(blocks.size()),
              .block_len = kBlockLen};
  const auto record_layers = [&](Context& ctx) -> Result<void> {
    Context many = with_tables(ctx, image, state);
    for (uint32_t i = 0; i < layers; ++i) {
      op.cache.k = run.input(std::vector<uint32_t>(op.cache.bytes() / 4, 0x20001000u));
      op.cache.v = run.input(std::vector<uint32_t>(op.cache.bytes() / 4, 0x20001000u));
      DP_CHECK(record_attention(many, op, {.f32 = y, .q8 = q8}));
    }
    return {};
  };
  if (!run.record(record_layers)) return;
  const gpu::Work work{.plan = &run.plan(), .rows = shape.slots, .times = 1};
  warm_up(run, shape.slots);
  double best = 0;
  for (uint32_t i = 0; i < kRepetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t n = 0; n < replays; ++n) {
      if (!device().submit({&work, 1})) return;
    }
    if (!gpu::run_to_completion(device(), device().idle())) return;
    const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
    const double us = wall.count() / kDispatches;
    if (best == 0 || us < best) best = us;
  }
  std::printf("%-14s at depth %u  %-34s %8.1f us a layer\n", shape.name, kPosition,
              run.choices().front().variant.c_str(), best);
  std::fflush(stdout);
}

void run_all(std::string_view part) {
  const auto time_wanted = [&](const BenchShape& shape, std::string_view operation,
                               std::string_view variant) {
    const bool wanted =
        std::string_view(shape.name).find(part) != part.npos || variant.find(part) != part.npos;
    if (wanted) time_variant(shape, operation, variant);
  };
  for (const StreamsShape& shape : kStreams) {
    if (std::string_view(shape.name).find(part) != part.npos) time_streams(shape);
  }
  for (const BenchShape& shape : kShapes) {
    if (shape.rows == 1) {
      for (const auto& row : attention_decode_variants()) time_wanted(shape, "attention_decode", row.name);
    } else if (is_skinny(shape)) {
      for (const auto& row : attention_skinny_variants()) time_wanted(shape, "attention_skinny", row.name);
    } else {
      for (const auto& row : attention_prefill_variants()) time_wanted(shape, "attention_prefill", row.name);
    }
  }
}

}  // namespace
}  // namespace doppler::kernels::testing

int main(int argc, char** argv) {
  doppler::kernels::testing::device();
  doppler::kernels::testing::run_all(argc > 1 ? argv[1] : "");
  return 0;
}
