// linear_chain_bench: the products of a whole step of a model, one after the other as in the model, for each number of
// rows. It shows what a kernel costs beside others, which a single timing does not. Norms, attention and the rest are
// left out.
//   linear_chain_bench [--model 8b|1b|storyteller] [--rows 2,4,8,16,32,64] [--plan-rows N] [--only once,narrow]
//                      [--json]
// --plan-rows: recorded for so many rows, while --rows are present; without it the plan has exactly --rows. --only:
// instead of the tables' choice, each row of the tables whose name ends so, wherever it can be used.
// Weights are zeros, of four layers in turn, more than any cache holds. ms: wall clock a step, many steps in flight,
// the best of some repetitions. Read next: product.h (the tables), linear_bench.cpp (one product at a time).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "gpu/device.h"
#include "kernels/common/step_state.h"
#include "kernels/glu/glu.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kCopies = 4, kReplays = 8, kRepetitions = 5;
// A GPU whose host compiled for a while before may run at half its speed for some 100 ms.
constexpr std::chrono::milliseconds kWarmUp(500);

struct ModelShape {
  std::string_view name;
  uint32_t layers, hidden, qkv, ffn, vocab;
  WeightFormat layer, down, head;  // down: of every second layer; the others' is `layer`
};

// Llama 3 in Q4_K_M; storyteller: something small, to try this program on a CPU.
constexpr ModelShape kModels[] = {
    {"8b", 32, 4096, 6144, 14336, 128256, WeightFormat::kTileQ4, WeightFormat::kTileQ6,
     WeightFormat::kTileQ6},
    {"1b", 16, 2048, 3072, 8192, 128256, WeightFormat::kTileQ4, WeightFormat::kTileQ6, WeightFormat::kTileQ6},
    {"storyteller", 6, 512, 768, 1280, 8192, WeightFormat::kTileQ8, WeightFormat::kTileQ8,
     WeightFormat::kTileQ8},
};

struct Options {
  const ModelShape* model = &kModels[0];
  std::vector<uint32_t> rows = {2, 4, 8, 16, 32, 64};
  uint32_t plan_rows = 0;
  std::vector<std::string> only;
  bool json = false;
};

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    const auto model = std::ranges::find(kModels, value, &ModelShape::name);
    if (flag == "--model" && model != std::end(kModels)) {
      options.model = model;
    } else if (flag == "--rows" && !value.empty()) {
      options.rows.clear();
      for (const std::string& part : split(value, ','))
        options.rows.push_back(std::max(1, std::atoi(part.c_str())));
    } else if (flag == "--plan-rows" && std::atoi(value.c_str()) > 0) {
      options.plan_rows = std::atoi(value.c_str());
    } else if (flag == "--only" && !value.empty()) {
      options.only = split(value, ',');
    } else {
      return fail(
          ErrorKind::kInvalidInput,
          "%s %s is not understood; there are --model 8b|1b|storyteller, --rows N,N, --plan-rows N, --only "
          "VARIANT,VARIANT, --json.",
          std::string(flag).c_str(), value.c_str());
    }
  }
  return options;
}

struct Layer {
  Weight qkv, out, gate_up, down;
};

class Chain {
 public:
  Chain(gpu::Device& device, const ModelShape& model, Policy policy, uint32_t max_rows)
      : device_(device),
        model_(model),
        policy_(std::move(policy)),
        max_rows_(max_rows),
        builder_(device.caps()) {}

  // ms a step.
  Result<double> measure(uint32_t rows) {
    DP_CHECK(record_step());
    DP_TRY(const gpu::BuiltPlans built, gpu::run_to_completion(device_, builder_.build(device_, {})));
    const StepState step{.rows = rows};
    DP_CHECK(device_.write(buffers_.back(), 0, {reinterpret_cast<const uint8_t*>(&step), sizeof(step)}));
    const gpu::Work work{.plan = &built.plans.front(), .rows = rows, .times = 1};
    double best = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t repetition = 0; repetition < kRepetitions;) {
      const auto start = std::chrono::steady_clock::now();
      for (uint32_t i = 0; i < kReplays; ++i) DP_CHECK(device_.submit({&work, 1}));
      DP_CHECK(gpu::run_to_completion(device_, device_.idle()));
      const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
      const double ms = wall.count() / kReplays;
      if (start < begin + kWarmUp) continue;
      if (repetition++ == 0 || ms < best) best = ms;
    }
    return best;
  }

 private:
  Result<TensorView> make(uint64_t bytes) {
    DP_TRY(gpu::Buffer buffer, gpu::run_to_completion(device_, device_.create_buffer({"bench", bytes})));
    buffers_.push_back(std::move(buffer));
    return builder_.external(buffers_.back());
  }
  Result<Weight> weight(WeightFormat format, uint32_t n, uint32_t k) {
    DP_TRY(const TensorView view, make(weight_layout(format, n, k).total_bytes));
    return Weight{.format = format, .n = n, .k = k, .pieces = {{view, 0, n}}};
  }
  Result<Layer> layer(bool second) {
    DP_TRY(Weight qkv, weight(model_.layer, model_.qkv, model_.hidden));
    DP_TRY(Weight out, weight(model_.layer, model_.hidden, model_.hidden));
    DP_TRY(Weight gate_up, weight(model_.layer, 2 * model_.ffn, model_.hidden));
    DP_TRY(Weight down, weight(second ? model_.down : model_.layer, model_.hidden, model_.ffn));
    return Layer{std::move(qkv), std::move(out), std::move(gate_up), std::move(down)};
  }
  // A matrix of activations in every form, and the form that a product reads.
  Result<Rows> rows_of(uint32_t k) {
    DP_TRY(const TensorView f32, make(uint64_t{4} * max_rows_ * k));
    DP_TRY(const TensorView q8, make(q8_bytes(max_rows_, k)));
    DP_TRY(const TensorView f16, make(f16_bytes(max_rows_, k)));
    return Rows{.f32 = f32, .q8 = q8, .f16 = f16};
  }
  static Rows read_by(const ProductChoice& choice, const Rows& rows) {
    switch (choice.reads()) {
      case InputForm::kQ8:
        return {.q8 = rows.q8};
      case InputForm::kF16:
        return {.f16 = rows.f16};
      default:
        return {.f32 = rows.f32};
    }
  }

  Result<void> product(Context& ctx, const Weight& weight, const Rows& x, Epilogue y) {
    DP_TRY(const ProductChoice choice, resolve_product(ctx, weight));
    return record(ctx, choice, Linear{.weight = weight, .x = read_by(choice, x), .y = std::move(y)});
  }
  // As lowering does it: a gate that the kernel refuses is a dispatch of its own.
  Result<void> gated(Context& ctx, const Layer& layer, const Rows& x, const Rows& y) {
    DP_TRY(const ProductChoice reader, resolve_product(ctx, layer.down));
    DP_TRY(const ProductChoice choice, resolve_product(ctx, layer.gate_up, ActivationFn::kSilu));
    const Rows made = read_by(reader, y);
    if (refuse_epilogue(ctx, layer.gate_up, choice, EpilogueKind::kGate).empty()) {
      return record(ctx, choice,
                    Linear{.weight = layer.gate_up,
                           .x = read_by(choice, x),
                           .y = Gate{.activation = ActivationFn::kSilu, .y = made}});
    }
    const TensorView both = builder_.scratch("gate_up", uint64_t{4} * max_rows_ * layer.gate_up.n);
    DP_CHECK(product(ctx, layer.gate_up, x, Store{.y = both}));
    Rows all = made;
    all.f32 = y.f32;
    return record(ctx, Glu{.gate_up = both, .y = all, .n = model_.ffn, .activate = ActivationFn::kSilu});
  }

  Result<void> record_step() {
    std::vector<Layer> layers;
    for (uint32_t i = 0; i < kCopies; ++i) {
      DP_TRY(Layer made, layer(i % 2 == 1));
      layers.push_back(std::move(made));
    }
    DP_TRY(const Weight head, weight(model_.head, model_.vocab, model_.hidden));
    DP_TRY(const Rows hidden, rows_of(model_.hidden));
    DP_TRY(const Rows inner, rows_of(model_.ffn));
    DP_TRY(const TensorView residual, make(uint64_t{4} * max_rows_ * model_.hidden));
    DP_TRY(const TensorView qkv, make(uint64_t{4} * max_rows_ * model_.qkv));
    DP_TRY(const TensorView logits, make(uint64_t{4} * max_rows_ * model_.vocab));
    DP_TRY(const TensorView state, make(sizeof(StepState)));  // the last: measure() writes it
    Context ctx{
        .plan = builder_, .policy = policy_, .choices = choices_, .state = state, .max_rows = max_rows_};
    builder_.begin("step", max_rows_);
    for (uint32_t i = 0; i < model_.layers; ++i) {
      const Layer& layer = layers[i % kCopies];
      DP_CHECK(product(ctx, layer.qkv, hidden, Store{.y = qkv}));
      DP_CHECK(product(ctx, layer.out, hidden, AddResidual{.y = residual}));
      DP_CHECK(gated(ctx, layer, hidden, inner));
      DP_CHECK(product(ctx, layer.down, inner, AddResidual{.y = residual}));
    }
    DP_CHECK(product(ctx, head, hidden, Store{.y = logits}));
    builder_.end();
    return {};
  }

  gpu::Device& device_;
  const ModelShape& model_;
  Policy policy_;
  uint32_t max_rows_;
  gpu::PlanBuilder builder_;
  std::vector<gpu::Buffer> buffers_;
  std::vector<Choice> choices_;
};

// Forces the variants that end so in every format that has one; false: no format has.
bool force(Policy& policy, const ModelShape& model, std::string_view suffix, uint32_t max_rows) {
  for (const WeightFormat format : {model.layer, model.down, model.head}) {
    const ProductShape shape{.format = format, .n = model.hidden, .k = model.hidden, .max_rows = max_rows};
    const std::string operation = product_operation(shape);
    const std::string name = operation + "." + std::string(suffix);
    const std::span<const ProductRow> rows = product_variants(shape);
    if (std::ranges::find(rows, name, &ProductRow::name) == rows.end()) return false;
    policy.forced[operation] = name;
  }
  return true;
}

Result<void> run(const Options& options) {
  gpu::DeviceOptions device_options;
  if (const char* provider = std::getenv("DOPPLER_WEBGPU")) device_options.provider = provider;
  Task<Result<std::unique_ptr<gpu::Device>>> opening = gpu::Device::open(device_options);
  opening.start();
  DP_TRY(const std::unique_ptr<gpu::Device> device, opening.take());
  const std::string model(options.model->name);
  if (!options.json) {
    std::printf("%s, %s\n| model | rows | of | variant | ms a step |\n|---|---|---|---|---|\n",
                device->caps().provider.c_str(), device->caps().adapter.c_str());
  }
  const std::vector<std::string> suffixes =
      options.only.empty() ? std::vector<std::string>{""} : options.only;
  for (const uint32_t rows : options.rows) {
    const uint32_t max_rows = std::max(rows, options.plan_rows);
    for (const std::string& suffix : suffixes) {
      Policy policy;
      if (!suffix.empty() && !force(policy, *options.model, suffix, max_rows)) continue;
      Chain chain(*device, *options.model, policy, max_rows);
      const Result<double> ms = chain.measure(rows);
      if (!ms) {
        std::fprintf(stderr, "%s\n", ms.error().message().c_str());
        continue;
      }
      const char* name = suffix.empty() ? "table" : suffix.c_str();
      std::printf(options.json
                      ? "{\"model\":\"%s\",\"rows\":%u,\"plan_rows\":%u,\"variant\":\"%s\",\"ms\":%.4f}\n"
                      : "| %s | %3u | %3u | %-10s | %8.3f |\n",
                  model.c_str(), rows, max_rows, name, *ms);
      std::fflush(stdout);
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
