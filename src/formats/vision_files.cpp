#include "formats/vision_files.h"

#include "formats/projector/projector_config.h"

namespace doppler::formats {
namespace {

Task<Result<Json>> read_vision_files_object(const Checkpoint& checkpoint, std::string file) {
  auto reading = checkpoint.read_projector_text(file);
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return Json();
  co_return parse_json(*text, file);
}

}  // namespace

Task<Result<std::optional<VisionFiles>>> read_vision_files(const Checkpoint& model,
                                                           const Checkpoint* projector) {
  const GgufFile* const header = projector ? projector->gguf() : model.projector();
  if (model.gguf() && !header) co_return std::nullopt;
  VisionFiles out{
      .tensors = projector ? projector : &model, .config = {}, .preprocessor = {}, .processor = {}};
  auto reading = read_vision_files_object(*out.tensors, "preprocessor_config.json");
  DP_CO_TRY(out.preprocessor, co_await std::move(reading));
  reading = read_vision_files_object(*out.tensors, "processor_config.json");
  DP_CO_TRY(out.processor, co_await std::move(reading));
  const Json* inner = find(out.processor, "image_processor");
  if (out.preprocessor.is_null() && inner) out.preprocessor = *inner;
  if (!header) {
    out.config = model.config();
    co_return out;
  }
  DP_CO_TRY(ProjectorConfig described, describe_projector(*header, *out.tensors));
  out.config = std::move(described.config);
  if (out.preprocessor.is_null()) out.preprocessor = std::move(described.preprocessor);
  co_return out;
}

}  // namespace doppler::formats
