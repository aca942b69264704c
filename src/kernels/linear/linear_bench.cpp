// kernel_bench: times linear products of given shapes in every variant the device runs, and says how much of
// the weights' bytes each moves a second. Weights are zeros, in enough copies to miss the caches.
//   kernel_bench [--rows 1,2,4,8,16] [--shape q4_k:4096x14336 ...] [--model 1b|8b|storyteller] [--only once,matrix]
//                [--constants] [--set slices=8,splits=2 ...] [--json]
// --only: variants whose names contain one of the words. --constants: also with each other value of each constant that
// `doppler tune` may change, one at a time. --set: also with these together.
// `alone`: GPU timestamps of one dispatch in a pass of its own (median). `chain`: wall clock a dispatch, with many
// dispatches a submit; each waits for the one before, because all write the same y. Read next: product.h (the tables).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/text.h"
#include "gpu/device.h"
#include "kernels/common/step_state.h"
#include "kernels/linear/product.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint64_t kWorkingSet = 400ull << 20;  // bytes of all copies together: beyond any cache of today
constexpr uint32_t kMostCopies = 64, kMostCopiesOfCpu = 4, kReplays = 20, kRepetitions = 3;
// A GPU whose host compiled for a while before may run at half its speed for some 100 ms.
constexpr std::chrono::milliseconds kWarmUp(250);

using Constants = std::map<std::string, uint32_t, std::less<>>;

struct Shape {
  WeightFormat format;
  uint32_t n, k;
};

struct Options {
  std::vector<uint32_t> rows = {1};
  std::vector<Shape> shapes;
  std::vector<std::string> only;
  std::vector<Constants> sets;
  bool constants = false;
  bool json = false;

  bool wants(std::string_view variant) const {
    return only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
             return variant.find(part) != variant.npos;
           });
  }
};

// A row of a table, perhaps with constants other than its own.
struct Candidate {
  const ProductRow& row;
  Constants constants;
};

struct Timing {
  std::string variant, shape;
  uint32_t rows = 1;
  std::vector<ChosenConstant> constants;
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

std::string shape_name(const Shape& shape) {
  return format_text("%s %ux%u", weight_format_info(shape.format).name, shape.n, shape.k);
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

bool parse_rows(const char* text, std::vector<uint32_t>& rows) {
  rows.clear();
  for (const std::string& part : split(text, ',')) {
    const int count = std::atoi(part.c_str());
    if (count <= 0) return false;
    rows.push_back(static_cast<uint32_t>(count));
  }
  return !rows.empty();
}

bool parse_constants(const char* text, std::vector<Constants>& sets) {
  Constants constants;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    const int value = equals == part.npos ? 0 : std::atoi(part.c_str() + equals + 1);
    if (value <= 0) return false;
    constants[part.substr(0, equals)] = static_cast<uint32_t>(value);
  }
  sets.push_back(std::move(constants));
  return true;
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json" || flag == "--constants") {
      (flag == "--json" ? options.json : options.constants) = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    Shape shape{};
    if (flag == "--rows" && parse_rows(value, options.rows)) {
      continue;
    }
    if (flag == "--set" && parse_constants(value, options.sets)) continue;
    if (flag == "--only") {
      for (const std::string& part : split(value, ',')) options.only.push_back(part);
    } else if (flag == "--shape" && parse_shape(value, shape)) {
      options.shapes.push_back(shape);
    } else if (flag == "--model" && !model_shapes(value).empty()) {
      options.shapes = model_shapes(value);
    } else {
      return fail(
          ErrorKind::kInvalidInput,
          "%s %s is not understood; there are --rows N,N, --shape FORMAT:NxK, --model 1b|8b|storyteller, "
          "--only VARIANT,VARIANT, --constants, --set NAME=VALUE,NAME=VALUE, --json.",
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

Result<Timing> measure(gpu::Device& device, const Shape& shape, uint32_t rows, const Candidate& candidate) {
  const ProductRow& row = candidate.row;
  Bench bench{device, {}};
  gpu::PlanBuilder builder(device.caps());
  const uint64_t bytes = weight_layout(shape.format, shape.n, shape.k).total_bytes;
  const uint32_t most_copies = device.caps().type == gpu::AdapterType::kCpu ? kMostCopiesOfCpu : kMostCopies;
  const auto copies = static_cast<uint32_t>(std::clamp<uint64_t>(kWorkingSet / bytes, 1, most_copies));
  DP_TRY(const TensorView x, bench.make(builder, uint64_t{4} * rows * shape.k));
  DP_TRY(const TensorView q8, bench.make(builder, q8_bytes(rows, (shape.k + 31) / 32 * 32)));
  DP_TRY(const TensorView f16, bench.make(builder, f16_bytes(rows, (shape.k + 31) / 32 * 32)));
  DP_TRY(const TensorView y, bench.make(builder, uint64_t{4} * rows * shape.n));
  DP_TRY(const TensorView state, bench.make(builder, sizeof(StepState)));
  const StepState step{.rows = rows};
  DP_CHECK(device.write(bench.buffers.back(), 0, {reinterpret_cast<const uint8_t*>(&step), sizeof(step)}));

  Policy policy;
  const ProductShape product{.format = shape.format, .n = shape.n, .k = shape.k, .max_rows = rows};
  const std::string operation = product_operation(product);
  policy.forced[operation] = row.name;
  if (!candidate.constants.empty()) {
    TuningTable table;
    table.choices[{operation, shape_name(shape)}] = {.variant = std::string(row.name),
                                                     .constants = candidate.constants};
    policy.tuning = std::make_shared<const TuningTable>(std::move(table));
  }
  std::vector<Choice> choices;
  Context ctx{.plan = builder, .policy = policy, .choices = choices, .state = state, .max_rows = rows};
  builder.begin("bench", rows);
  for (uint32_t copy = 0; copy < copies; ++copy) {
    DP_TRY(const TensorView weights, bench.make(builder, bytes));
    const Weight weight{
        .format = shape.format, .n = shape.n, .k = shape.k, .pieces = {{weights, 0, shape.n}}};
    DP_TRY(const ProductChoice choice, resolve_product(ctx, weight));
    DP_CHECK(record(
        ctx, choice,
        Linear{.weight = weight,
               .x = Rows{.f32 = x, .q8 = row.q8 ? q8 : TensorView{}, .f16 = row.f16 ? f16 : TensorView{}},
               .y = Store{.y = y}}));
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
  // Warm: pipelines compile on first use, and clocks rise slowly.
  const auto warm = std::chrono::steady_clock::now() + kWarmUp;
  do DP_CHECK(replay(kReplays));
  while (std::chrono::steady_clock::now() < warm);
  double best_us = 0;
  for (uint32_t repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    DP_CHECK(replay(kReplays));
    const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - start;
    if (repetition == 0 || wall.count() < best_us) best_us = wall.count();
  }
  Timing timing{.variant = std::string(row.name), .shape = shape_name(shape), .rows = rows};
  for (const Choice& choice : choices) {
    if (choice.operation == operation) timing.constants = choice.constants;
  }
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
  std::string constants;
  for (const ChosenConstant& constant : t.constants) {
    constants += format_text("%s%s=%u%s", constants.empty() ? "" : " ", constant.name.c_str(), constant.value,
                             constant.value == constant.standard ? "" : "*");
  }
  if (json) {
    std::printf(
        "{\"variant\":\"%s\",\"shape\":\"%s\",\"rows\":%u,\"constants\":\"%s\",\"alone_us\":%.2f,"
        "\"chain_us\":%.2f,\"gb_per_s\":%.1f,\"tflops\":%.3f}\n",
        t.variant.c_str(), t.shape.c_str(), t.rows, constants.c_str(), t.alone_us, t.chain_us, t.gb_per_s,
        t.tflops);
  } else {
    std::printf("| %-28s | %-18s | %3u | %9.2f | %9.2f | %8.1f | %8.3f | %s |\n", t.variant.c_str(),
                t.shape.c_str(), t.rows, t.alone_us, t.chain_us, t.gb_per_s, t.tflops, constants.c_str());
  }
  std::fflush(stdout);
}

// The row itself, and with other constants if the options say so.
Result<void> measure_row(gpu::Device& device, const Shape& shape, uint32_t rows, const ProductRow& row,
                         const Options& options) {
  DP_TRY(const Timing standard, measure(device, shape, rows, {.row = row, .constants = {}}));
  print(standard, options.json);
  for (const Constants& set : options.sets) {
    DP_TRY(const Timing other, measure(device, shape, rows, {.row = row, .constants = set}));
    print(other, options.json);
  }
  if (!options.constants) return {};
  for (const ChosenConstant& constant : standard.constants) {
    for (const uint32_t value : constant.alternatives) {
      if (value == constant.value) continue;
      DP_TRY(const Timing other,
             measure(device, shape, rows, {.row = row, .constants = {{constant.name, value}}}));
      print(other, options.json);
    }
  }
  return {};
}

Result<void> run(const Options& options) {
  gpu::DeviceOptions device_options;
  if (const char* provider = std::getenv("DOPPLER_WEBGPU")) device_options.provider = provider;
  Task<Result<std::unique_ptr<gpu::Device>>> opening = gpu::Device::open(device_options);
  opening.start();
  DP_TRY(const std::unique_ptr<gpu::Device> device, opening.take());
  if (!options.json) {
    std::printf(
        "%s, %s (*: not the default)\n| variant | shape | rows | alone us | chain us | GB/s | TFLOP/s | "
        "constants "
        "|\n|---|---|---|---|---|---|---|---|\n",
        device->caps().provider.c_str(), device->caps().adapter.c_str());
  }
  for (const Shape& shape : options.shapes) {
    for (const uint32_t rows : options.rows) {
      const ProductShape product{.format = shape.format, .n = shape.n, .k = shape.k, .max_rows = rows};
      for (const ProductRow& row : product_variants(product)) {
        if (!options.wants(row.name) || !refuse(row, product, device->caps(), Policy{}).empty()) continue;
        DP_CHECK(measure_row(*device, shape, rows, row, options));
      }
    }
  }
  return {};
}

int bench_main(int argc, char** argv) {
  Result<Options> options = parse(argc, argv);
  const Result<void> done = options ? run(*options) : Result<void>(Unexpected(options.error()));
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().message().c_str());
  return 1;
}

}  // namespace
}  // namespace doppler::kernels

int main(int argc, char** argv) { return doppler::kernels::bench_main(argc, argv); }
