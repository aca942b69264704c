#include "formats/vision_files.h"

#include "formats/projector/projector_config.h"

namespace doppler::formats {
namespace {

Task<Result<Json>> read_object(const Checkpoint& checkpoint, std::string file) {
  auto reading = checkpoint.read_text(file);
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return Json();
  co_return parse_json(*text, file);
}

}  // namespace

Task<Result<std::optional<VisionFiles>>> read_vision_files(const Checkpoint& model,
                                                           const Checkpoint* projector) {
  if (model.gguf() && !projector) co_return std::nullopt;
  VisionFiles out{
      .tensors = projector ? projector : &model, .config = {}, .preprocessor = {}, .processor = {}};
  auto reading = read_object(*out.tensors, "preprocessor_config.json");
  DP_CO_TRY(out.preprocessor, co_await std::move(reading));
  reading = read_object(*out.tensors, "processor_config.json");
  DP_CO_TRY(out.processor, co_await std::move(reading));
  const Json* inner = find(out.processor, "image_processor");
  if (out.preprocessor.is_null() && inner) out.preprocessor = *inner;
  if (!projector) {
    out.config = model.config();
    co_return out;
  }
  DP_CO_TRY(ProjectorConfig described, describe_projector(*projector));
  out.config = std::move(described.config);
  if (out.preprocessor.is_null()) out.preprocessor = std::move(described.preprocessor);
  co_return out;
}

}  // namespace doppler::formats
