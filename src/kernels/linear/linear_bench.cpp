// kernel_bench: times linear products of given shapes in every variant the device runs, and says how much of
// the weights' bytes each moves a second. Weights are zeros, in enough copies to miss the caches.
//   kernel_bench [--rows 1] [--shape q4_k:4096x14336 ...] [--model 1b|8b|storyteller] [--only dp4a] [--json]
// alone: GPU timestamps of one dispatch in a pass of its own (median). chain: wall clock a dispatch, many
// dispatches a submit; each waits for the one before, because all write the same y. Read next: product.h (the
// tables).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/device.h"
#include "kernels/common/step_state.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr uint64_t kWorkingSet = 400ull << 20;  // bytes of all copies together: beyond any cache of today
constexpr uint32_t kMostCopies = 64, kReplays = 20, kRepetitions = 3;

struct Shape {
  WeightFormat format;
  uint32_t n, k;
};

struct Options {
  uint32_t rows = 1;
  std::vector<Shape> shapes;
  std::string only;
  bool json = false;
};

struct Timing {
  std::string variant, shape;
  double alone_us = 0, chain_us = 0, gb_per_s = 0, tflops = 0;
};

// The matrices of one layer and the head.
std::vector<Shape> model_shapes(std::string_view model) {
  constexpr WeightFormat q4 = WeightFormat::kTileQ4, q6 = WeightFormat::kTileQ6, q8 = WeightFormat::kTileQ8;
  if (model == "1b") {
    return {{q4, 3072, 2048}, {q4, 2048, 2048}, {q4, 16384, 2048},
            {q4, 2048, 8192}, {q6, 2048, 8192}, {q6, 128256, 2048}};
  }
  if (model == "8b") {
    return {{q4, 6144, 4096},  {q4, 4096, 4096},  {q4, 28672, 4096},
            {q4, 4096, 14336}, {q6, 4096, 14336}, {q6, 128256, 4096}};
  }
  if (model == "storyteller") {
    return {{q8, 512, 512}, {q8, 2560, 512}, {q8, 512, 1280}, {q8, 8192, 512},
            {q4, 512, 512}, {q4, 2560, 512}, {q4, 512, 1280}, {q4, 8192, 512}};
  }
  return {};
}

bool parse_shape(const char* text, Shape& shape) {
  char format[16];
  if (std::sscanf(text, "%15[^:]:%ux%u", format, &shape.n, &shape.k) != 3) return false;
  for (int i = 0; i < kWeightFormatCount; ++i) {
    shape.format = static_cast<WeightFormat>(i);
    if (std::strcmp(weight_format_info(shape.format).name, format) == 0) return true;
  }
  return false;
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    Shape shape{};
    if (flag == "--rows" && std::atoi(value) > 0) {
      options.rows = static_cast<uint32_t>(std::atoi(value));
    } else if (flag == "--only") {
      options.only = value;
    } else if (flag == "--shape" && parse_shape(value, shape)) {
      options.shapes.push_back(shape);
    } else if (flag == "--model" && !model_shapes(value).empty()) {
      options.shapes = model_shapes(value);
    } else {
      return fail(
          ErrorKind::kInvalidInput,
          "%s %s is not understood; there are --rows N, --shape FORMAT:NxK, --model 1b|8b|storyteller, "
          "--only VARIANT, --json.",
          argv[i - (value[0] != 0)], value);
    }
  }
  if (options.shapes.empty()) options.shapes = model_shapes("storyteller");
  return options;
}

// Everything one measurement needs on the device.
struct Bench {
  gpu::Device& device;
  std::vector<gpu::Buffer> buffers;

  Result<TensorView> make(gpu::PlanBuilder& builder, uint64_t bytes) {
    DP_TRY(gpu::Buffer buffer, gpu::run_to_completion(device, device.create_buffer({"bench", bytes})));
    buffers.push_back(std::move(buffer));
    return builder.external(buffers.back());
  }
};

Result<Timing> measure(gpu::Device& device, const Shape& shape, uint32_t rows, const ProductRow& row) {
  Bench bench{device, {}};
  gpu::PlanBuilder builder(device.caps());
  const uint64_t bytes = weight_layout(shape.format, shape.n, shape.k).total_bytes;
  const auto copies = static_cast<uint32_t>(std::clamp<uint64_t>(kWorkingSet / bytes, 1, kMostCopies));
  DP_TRY(const TensorView x, bench.make(builder, uint64_t{4} * rows * shape.k));
  DP_TRY(const TensorView q8, bench.make(builder, q8_bytes(rows, (shape.k + 31) / 32 * 32)));
  DP_TRY(const TensorView f16, bench.make(builder, f16_bytes(rows, (shape.k + 31) / 32 * 32)));
  DP_TRY(const TensorView y, bench.make(builder, uint64_t{4} * rows * shape.n));
  DP_TRY(const TensorView state, bench.make(builder, sizeof(StepState)));
  const StepState step{.rows = rows};
  DP_CHECK(device.write(bench.buffers.back(), 0, {reinterpret_cast<const uint8_t*>(&step), sizeof(step)}));

  Policy policy;
  const ProductShape product{.format = shape.format, .n = shape.n, .k = shape.k, .max_rows = rows};
  policy.forced[product_operation(product)] = row.name;
  std::vector<Choice> choices;
  Context ctx{.plan = builder, .policy = policy, .choices = choices, .state = state, .max_rows = rows};
  builder.begin("bench", rows);
  for (uint32_t copy = 0; copy < copies; ++copy) {
    DP_TRY(const TensorView weights, bench.make(builder, bytes));
    const Weight weight{
        .format = shape.format, .n = shape.n, .k = shape.k, .pieces = {{weights, 0, shape.n}}};
    DP_CHECK(record(
        ctx, Linear{.weight = weight,
                    .x = {.f32 = x, .q8 = row.q8 ? q8 : TensorView{}, .f16 = row.f16 ? f16 : TensorView{}},
                    .y = y}));
  }
  builder.end();
  DP_TRY(const gpu::BuiltPlans built, gpu::run_to_completion(device, builder.build(device, {})));
  const gpu::Plan& plan = built.plans.front();

  const auto replay = [&](uint32_t times) -> Result<void> {
    // A submit a replay, so that the host encodes the next while the GPU works.
    const gpu::Work work{.plan = &plan, .rows = rows, .times = 1};
    for (uint32_t i = 0; i < times; ++i) DP_CHECK(device.submit({&work, 1}));
    return gpu::run_to_completion(device, device.idle());
  };
  DP_CHECK(replay(kReplays));  // warm: pipelines compile on first use, and clocks rise
  double best_us = 0;
  for (uint32_t repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    DP_CHECK(replay(kReplays));
    const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
    if (repetition == 0 || wall.count() < best_us) best_us = wall.count();
  }
  Timing timing{.variant = std::string(row.name),
                .shape = format_text("%s %ux%u", weight_format_info(shape.format).name, shape.n, shape.k)};
  timing.chain_us = best_us / (kReplays * copies);
  if (device.caps().timestamps) {
    DP_TRY(std::vector<uint64_t> alone, gpu::run_to_completion(device, device.time_commands(plan, rows)));
    std::ranges::sort(alone);
    timing.alone_us = static_cast<double>(alone[alone.size() / 2]) / 1e3;
  }
  timing.gb_per_s = static_cast<double>(bytes) / timing.chain_us / 1e3;
  timing.tflops = 2.0 * rows * shape.n * shape.k / timing.chain_us / 1e6;
  return timing;
}

void print(const Timing& t, bool json) {
  if (json) {
    std::printf(
        "{\"variant\":\"%s\",\"shape\":\"%s\",\"alone_us\":%.2f,\"chain_us\":%.2f,\"gb_per_s\":%.1f,"
        "\"tflops\":%.3f}\n",
        t.variant.c_str(), t.shape.c_str(), t.alone_us, t.chain_us, t.gb_per_s, t.tflops);
  } else {
    std::printf("| %-28s | %-18s | %9.2f | %9.2f | %8.1f | %8.3f |\n", t.variant.c_str(), t.shape.c_str(),
                t.alone_us, t.chain_us, t.gb_per_s, t.tflops);
  }
  std::fflush(stdout);
}

Result<void> run(const Options& options) {
  gpu::DeviceOptions device_options;
  if (const char* provider = std::getenv("DOPPLER_WEBGPU")) device_options.provider = provider;
  Task<Result<std::unique_ptr<gpu::Device>>> opening = gpu::Device::open(device_options);
  opening.start();
  DP_TRY(const std::unique_ptr<gpu::Device> device, opening.take());
  if (!options.json) {
    std::printf(
        "%s, %s, %u rows\n| variant | shape | alone us | chain us | GB/s | TFLOP/s "
        "|\n|---|---|---|---|---|---|\n",
        device->caps().provider.c_str(), device->caps().adapter.c_str(), options.rows);
  }
  for (const Shape& shape : options.shapes) {
    const ProductShape product{.format = shape.format, .n = shape.n, .k = shape.k, .max_rows = options.rows};
    for (const ProductRow& row : product_variants(product)) {
      if (row.name.find(options.only) == row.name.npos) continue;
      if (!refuse(row, product, device->caps(), Policy{}).empty()) continue;
      DP_TRY(const Timing timing, measure(*device, shape, options.rows, row));
      print(timing, options.json);
    }
  }
  return {};
}

int bench_main(int argc, char** argv) {
  Result<Options> options = parse(argc, argv);
  const Result<void> done = options ? run(*options) : Result<void>(std::unexpected(options.error()));
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().message().c_str());
  return 1;
}

}  // namespace
}  // namespace doppler::kernels

int main(int argc, char** argv) { return doppler::kernels::bench_main(argc, argv); }
