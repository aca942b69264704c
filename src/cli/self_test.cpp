#include "cli/self_test.h"

#include "formats/rdrr/rdrr_writer.h"

namespace doppler::cli {

Result<Model> load_for_self_test(ModelFlags flags) {
  flags.load.lane = engine::kSelfTestLane;
  flags.load.ctx_len = engine::kSelfTestCtxLen;
  flags.load.chunk = 0;
  return load_named_model(flags, {.all_logits = true});
}

Result<void> add_self_test(const std::string& folder, ModelFlags flags) {
  flags.model = folder;
  flags.synthetic.clear();
  DP_TRY(Model model, load_for_self_test(std::move(flags)));
  engine::LoadedModel& loaded = *Model::Impl::of(model).loaded;
  const formats::RdrrManifest* const manifest = loaded.checkpoint->rdrr();
  if (!manifest) {
    return fail(ErrorKind::kInvalidInput, "%s is no RDRR folder; only those keep a self test.",
                folder.c_str());
  }
  formats::RdrrManifest changed = *manifest;
  DP_TRY(changed.self_test,
         gpu::run_to_completion(loaded.runner->device(), engine::make_self_test(*loaded.runner)));
  return formats::rewrite_rdrr_manifest(folder, std::move(changed));
}

}  // namespace doppler::cli
