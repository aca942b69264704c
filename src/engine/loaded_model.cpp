#include "engine/loaded_model.h"

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "engine/kernel_hints.h"
#include "engine/tuning.h"
#include "engine/vocab_gguf.h"
#include "formats/projector/projector.h"
#include "tokenizer/template/render_input.h"

namespace doppler::engine {
namespace {

struct TokenizerFiles {
  std::string tokenizer, config;
};

// Ids named by eos_token_id of a config file: a number or a list.
void add_end_tokens(const Json& config, std::vector<uint32_t>& stop_tokens) {
  const Json* ids = find(config, "eos_token_id");
  if (!ids) return;
  const auto add = [&](const Json& id) {
    if (!id.is_number_integer()) return;
    const auto value = id.get<int64_t>();
    if (value < 0 || value > UINT32_MAX) return;
    const auto token = static_cast<uint32_t>(value);
    if (std::ranges::find(stop_tokens, token) == stop_tokens.end()) stop_tokens.push_back(token);
  };
  if (ids->is_array()) {
    for (const Json& id : *ids) add(id);
  } else {
    add(*ids);
  }
}

Task<Result<tokenizer::VocabSpec>> read_vocab(const formats::Checkpoint& checkpoint) {
  if (const formats::GgufFile* gguf = checkpoint.gguf()) co_return vocab_from_gguf(*gguf);
  DP_CO_TRY(const std::optional<std::string> text, co_await checkpoint.read_text("tokenizer.json"));
  if (!text) {
    co_return fail(ErrorKind::kInvalidInput, "There is no tokenizer.json in %s.", checkpoint.name().c_str());
  }
  DP_CO_TRY(const std::optional<std::string> config, co_await checkpoint.read_text("tokenizer_config.json"));
  co_return tokenizer::vocab_from_tokenizer_json(*text, config.value_or(std::string()));
}

Task<Result<void>> add_config_end_tokens(const formats::Checkpoint& checkpoint,
                                         std::vector<uint32_t>& stop_tokens) {
  if (checkpoint.gguf()) co_return Result<void>();
  add_end_tokens(checkpoint.config(), stop_tokens);
  DP_CO_TRY(const auto text, co_await checkpoint.read_text("generation_config.json"));
  if (text) {
    DP_CO_TRY(const Json config, parse_json(*text, "generation_config.json"));
    add_end_tokens(config, stop_tokens);
  }
  co_return Result<void>();
}

// The text side of a model that sees.
Result<void> add_images(const Json& config, const model::ImageStore& store, const model::DeviceModel& runner,
                        TextModel& text) {
  DP_TRY(ImageMarks marks,
         image_marks(config, store.encoder().rules(), runner.config().vocab_size, text.tokenizer.get()));
  if (store.encoder().tower().tower.sight == formats::PictureSight::kPrompt)
    marks.most_prompt = runner.chunk() - runner.options().max_sequences;
  ModelTemplate& chat = text.templates.chat;
  if (marks.text && chat.source.empty()) chat = parse_template(std::string(marks.text->chat_template));
  text.images = std::move(marks);
  return {};
}

}  // namespace

Task<Result<TextModel>> load_text_model(const formats::Checkpoint& checkpoint,
                                        std::string template_override) {
  TextModel out;
  auto vocab = co_await read_vocab(checkpoint);
  if (vocab) {
    auto made = tokenizer::Tokenizer::create(std::move(*vocab));
    if (made) {
      out.tokenizer = std::move(*made);
    } else {
      out.tokenizer_problem = made.error().message();
    }
  } else {
    out.tokenizer_problem = vocab.error().message();
  }
  if (out.tokenizer) {
    for (const int32_t id : out.tokenizer->end_of_generation())
      out.stop_tokens.push_back(static_cast<uint32_t>(id));
  }
  DP_CO_CHECK(co_await add_config_end_tokens(checkpoint, out.stop_tokens));

  auto loading = load_templates(checkpoint, std::move(template_override));
  DP_CO_TRY(out.templates, co_await std::move(loading));
  co_return out;
}

Task<Result<std::unique_ptr<LoadedModel>>> load_model(
    gpu::Device& device, std::unique_ptr<formats::FileSet> files, model::RunnerOptions options,
    std::string template_override, model::LoadProgress progress, formats::RdrrOptions rdrr,
    AdapterSources adapters, std::unique_ptr<formats::FileSet> projector) {
  const auto start = std::chrono::steady_clock::now();
  auto loaded = std::make_unique<LoadedModel>();
  DP_CO_TRY(loaded->checkpoint, co_await formats::open_checkpoint(std::move(files), std::move(rdrr)));
  allow_tuned_lane(*loaded->checkpoint, options.policy);
  DP_CO_TRY(loaded->text, co_await load_text_model(*loaded->checkpoint, std::move(template_override)));
  if (const formats::RdrrManifest* manifest = loaded->checkpoint->rdrr();
      manifest && manifest->kernel_hints) {
    DP_CO_CHECK(co_await apply_kernel_hints(*manifest->kernel_hints, device.caps(), options.policy));
  }
  if (options.images) {
    auto opening = formats::open_projector(*loaded->checkpoint, std::move(projector));
    DP_CO_TRY(loaded->projector, co_await std::move(opening));
    options.projector = loaded->projector.get();
  }
  if (!adapters.files.empty() || adapters.slots != 0) {
    auto opening = open_adapters(std::move(adapters), *loaded->checkpoint, options.adapters);
    DP_CO_TRY(loaded->named_adapters, co_await std::move(opening));
  }
  DP_CO_TRY(loaded->runner, co_await model::DeviceModel::load(device, *loaded->checkpoint, std::move(options),
                                                              std::move(progress)));
  if (const model::ImageStore* store = loaded->runner->images()) {
    DP_CO_CHECK(add_images(loaded->checkpoint->config(), *store, *loaded->runner, loaded->text));
  }
  loaded->load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  loaded->after_load = device.counters();
  co_return loaded;
}

Result<const ImageMarks*> marks_of(const TextModel& text) {
  if (text.images) return &*text.images;
  return fail(ErrorKind::kUnsupported, "This model reads no pictures.");
}

Result<std::string> apply_chat_template(const TextModel& text, const Json& messages,
                                        bool add_generation_prompt) {
  tmpl::RenderInput input;
  input.messages = messages;
  input.add_generation_prompt = add_generation_prompt;
  return apply_chat_template(text, std::move(input));
}

Result<std::string> apply_chat_template(const TextModel& text, tmpl::RenderInput input) {
  const ModelTemplate& chosen = text.templates.choose(input.tools.is_array(), input.documents.is_array());
  if (!chosen.parsed) {
    if (!chosen.problem.empty()) {
      return fail(ErrorKind::kUnsupported, "The model's chat template cannot be used: %s",
                  chosen.problem.c_str());
    }
    return fail(ErrorKind::kUnsupported, "The model has no chat template; give one with --template FILE.");
  }
  if (text.tokenizer) {
    input.bos_token = text.tokenizer->token_text(text.tokenizer->bos());
    input.eos_token = text.tokenizer->token_text(text.tokenizer->eos());
  }
  return chosen.parsed->render(input);
}

}  // namespace doppler::engine
