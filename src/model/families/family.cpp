#include "model/families/family.h"

#include <string_view>

#include "base/text.h"

namespace doppler::model {
namespace {

struct Family {
  std::string_view name;  // formats::Architecture::family
  std::unique_ptr<FamilyModel> (*make)(const formats::ModelConfig& config, uint32_t ctx_len);
};
constexpr Family kFamilies[] = {{"llama", make_llama}, {"gemma3", make_gemma3}};

Result<const Family*> find_family(const formats::ModelConfig& config) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == config.family) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return fail(ErrorKind::kUnsupported,
              "Models of family \"%s\" can be read and converted but not run yet; families that run are: %s.",
              config.family.c_str(), known.c_str());
}

}  // namespace

Result<void> keep_hidden(kernels::Context& ctx, const StepIo& io, kernels::TensorView x, uint32_t hidden_dim,
                         uint32_t index) {
  if (!io.hidden.valid()) return {};
  const uint64_t bytes = static_cast<uint64_t>(ctx.max_rows) * hidden_dim * 4;
  return ctx.plan.copy(x, io.hidden.sub(index * bytes, bytes), "hidden");
}

Result<void> check_has_forward_pass(const formats::ModelConfig& config) {
  DP_CHECK(find_family(config));
  return {};
}

Result<std::unique_ptr<FamilyModel>> make_family(const formats::ModelConfig& config, uint32_t ctx_len) {
  DP_TRY(const Family* family, find_family(config));
  return family->make(config, ctx_len);
}

}  // namespace doppler::model
