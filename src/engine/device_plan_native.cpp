#include "engine/device_plan_native.h"

#include "base/json.h"
#include "base/log.h"
#include "engine/model_options.h"

namespace doppler::engine {
namespace {

Unexpected refuse(const char* what) {
  return fail(ErrorKind::kUnsupported, "The layers of a model cannot lie on several devices with %s.", what);
}

// Errors: options that a model in parts does not have yet.
Result<void> check_for_parts(const LoadOptions& options) {
  if (!options.adapters.empty() || options.adapter_slots != 0) return refuse("adapters (--lora)");
  if (options.cache_host_bytes != 0) return refuse("prefixes in host memory (--cache-host)");
  if (!options.mmproj.empty()) return refuse("pictures (--mmproj)");
  if (options.pan_and_scan) return refuse("pictures (--pan-and-scan)");
  return {};
}

void tell_of_left_out(const formats::Checkpoint& checkpoint, const LoadOptions& options) {
  const auto tell = [](const char* what) {
    log(LogLevel::kWarning, "%s left out, since the layers lie on several devices.", what);
  };
  const bool sees = !checkpoint.gguf() && find(checkpoint.config(), "vision_config") != nullptr;
  if (options.images && sees) tell("Pictures are");
  if (!options.draft_model.empty()) tell("The draft model is");
  if (options.draft == "lookup") tell("Drafts are");
}

}  // namespace

Result<void> check_split_mode(std::string_view word, size_t devices) {
  if (word == "layer" && devices == 1) {
    return fail(ErrorKind::kInvalidInput,
                "The layers were to lie on several devices (--split-mode layer), but one is given.");
  }
  if (word == "auto" || word == "layer" || word == "none") return {};
  return fail(ErrorKind::kInvalidInput, "Split mode \"%s\" is not known; allowed are auto, layer and none.",
              printable(word).c_str());
}

Result<std::optional<model::SplitPlan>> plan_devices(const formats::Checkpoint& checkpoint,
                                                     const LoadOptions& options,
                                                     std::span<const gpu::Caps* const> devices) {
  if (options.split_mode == "none") return std::nullopt;
  DP_TRY(const model::RunnerOptions runner, runner_options(options));
  const bool is_asked = options.split_mode == "layer";
  bool has_experts = false;
  if (!is_asked) {
    DP_TRY(const model::WholeModel whole, model::whole_model(checkpoint, runner, devices));
    if (whole.fits || !whole.writes_text || runner.expert_bytes != 0) return std::nullopt;
    has_experts = whole.has_experts;
  }
  DP_CHECK(check_for_parts(options));
  DP_TRY(model::SplitPlan plan, model::plan_split(checkpoint, runner, devices));
  if (!plan.fits && has_experts) return std::nullopt;  // each device pages them
  DP_CHECK(plan.fits);
  tell_of_left_out(checkpoint, options);
  return plan;
}

}  // namespace doppler::engine
