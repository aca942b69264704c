// Everything a loaded model consists of, found in its checkpoint: the runner on the GPU, the tokenizer, the chat
// template, the tokens that end a text. Platform-free: the caller opens the device and the files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.h"
#include "engine/adapters.h"
#include "engine/image_prompt.h"
#include "engine/model_templates.h"
#include "engine/scheduler/host_drafter.h"
#include "formats/checkpoint.h"
#include "gpu/device.h"
#include "model/device_model.h"
#include "tokenizer/tokenizer.h"

namespace doppler::tmpl {
struct RenderInput;  // tokenizer/template/render_input.h
}

namespace doppler::engine {

// The text side of a checkpoint, without any GPU: `tokenize`, `inspect`.
struct TextModel {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // null: the checkpoint has none
  std::string tokenizer_problem;                          // why it is null
  ModelTemplates templates;
  std::vector<uint32_t> stop_tokens;  // end-of-generation ids
  std::optional<ImageMarks> images;   // of a model that was loaded with its vision tower
};
// template_override: Jinja text that replaces the model's own, or empty. An override that does not parse is an
// error; the model's own that does not parse is only noted.
Task<Result<TextModel>> load_text_model(const formats::Checkpoint& checkpoint, std::string template_override);

struct LoadedModel {
  std::unique_ptr<formats::Checkpoint> checkpoint;
  std::unique_ptr<formats::Checkpoint>
      projector;  // the tower's file beside a GGUF model; null: there is none
  TextModel text;
  std::unique_ptr<model::DeviceModel> runner;
  std::vector<NamedAdapter> named_adapters;
  // A draft model and what asks it; null: there is none.
  std::unique_ptr<LoadedModel> draft;
  std::unique_ptr<HostDrafter> drafter;
  double load_seconds = 0;
  gpu::Counters after_load;  // objects created later must not be more
};
Task<Result<std::unique_ptr<LoadedModel>>> load_model(
    gpu::Device& device, std::unique_ptr<formats::FileSet> files, model::RunnerOptions options,
    std::string template_override, model::LoadProgress progress, formats::RdrrOptions rdrr = {},
    AdapterSources adapters = {}, std::unique_ptr<formats::FileSet> projector = nullptr);

// Error: the model reads no pictures, or was loaded without its tower.
Result<const ImageMarks*> marks_of(const TextModel& text);

// The conversation as the model's template writes it, with the opening of the answer if asked.
Result<std::string> apply_chat_template(const TextModel& text, const Json& messages,
                                        bool add_generation_prompt);
// The same with all that a template may see; the texts of the special tokens are filled in here.
Result<std::string> apply_chat_template(const TextModel& text, tmpl::RenderInput input);

}  // namespace doppler::engine
