#include "engine/model_templates.h"

#include "base/json.h"

namespace doppler::engine {
namespace {

// The names that Hugging Face's templates of one model have, beside "default".
constexpr const char* kTemplateNames[] = {"tool_use", "rag"};
constexpr const char* kTemplateFolders[] = {"additional_chat_templates", "chat_templates"};

using TemplateSources = std::map<std::string, std::string, std::less<>>;  // "": the one that has no name

Result<TemplateSources> gguf_templates(const formats::GgufFile& gguf) {
  TemplateSources out;
  DP_TRY(auto plain, gguf.get_string("tokenizer.chat_template"));
  if (plain) out[""] = std::move(*plain);
  for (const char* name : kTemplateNames) {
    DP_TRY(auto source, gguf.get_string(std::string("tokenizer.chat_template.") + name));
    if (source) out[name] = std::move(*source);
  }
  return out;
}

// From tokenizer_config.json: a text, or a list of texts with names.
Result<void> add_listed(const Json& config, TemplateSources* out) {
  const Json* source = find(config, "chat_template");
  if (!source) return {};
  if (source->is_string()) out->try_emplace("", source->get<std::string>());
  if (!source->is_array()) return {};
  for (const Json& entry : *source) {
    DP_TRY(const auto name, get_string(entry, "name"));
    DP_TRY(const auto text, get_string(entry, "template"));
    if (name && text) out->try_emplace(*name == "default" ? "" : *name, *text);
  }
  return {};
}

Task<Result<TemplateSources>> read_templates(const formats::Checkpoint& checkpoint) {
  if (const formats::GgufFile* gguf = checkpoint.gguf()) co_return gguf_templates(*gguf);
  TemplateSources out;
  DP_CO_TRY(auto file, co_await checkpoint.read_text("chat_template.jinja"));
  if (file) out[""] = std::move(*file);
  for (const char* folder : kTemplateFolders) {
    for (const char* name : kTemplateNames) {
      auto reading = checkpoint.read_text(std::string(folder) + "/" + name + ".jinja");
      DP_CO_TRY(auto named, co_await std::move(reading));
      if (named) out.try_emplace(name, std::move(*named));
    }
  }
  DP_CO_TRY(const auto config_text, co_await checkpoint.read_text("tokenizer_config.json"));
  if (!config_text) co_return out;
  DP_CO_TRY(const Json config, parse_json(*config_text, "tokenizer_config.json"));
  DP_CO_CHECK(add_listed(config, &out));
  co_return out;
}

}  // namespace

ModelTemplate parse_template(std::string source) {
  ModelTemplate out{.source = std::move(source), .parsed = {}, .problem = {}};
  if (out.source.empty()) return out;
  auto parsed = tmpl::ChatTemplate::parse(out.source);
  if (parsed) {
    out.parsed = std::move(*parsed);
  } else {
    out.problem = parsed.error().message();
  }
  return out;
}

const ModelTemplate& ModelTemplates::choose(bool has_tools, bool has_documents) const {
  const auto found = named.find(has_tools ? "tool_use" : has_documents ? "rag" : "");
  return found == named.end() || !found->second.parsed ? chat : found->second;
}

Task<Result<ModelTemplates>> load_templates(const formats::Checkpoint& checkpoint, std::string given) {
  ModelTemplates out;
  if (!given.empty()) {
    auto parsed = tmpl::ChatTemplate::parse(given);
    if (!parsed) co_return forward(std::move(parsed).error().add_while("reading the chat template given"));
    out.chat = {.source = std::move(given), .parsed = std::move(*parsed), .problem = {}};
    co_return out;
  }
  DP_CO_TRY(TemplateSources sources, co_await read_templates(checkpoint));
  for (auto& [name, source] : sources) {
    ModelTemplate& of = name.empty() ? out.chat : out.named[name];
    of = parse_template(std::move(source));
  }
  co_return out;
}

}  // namespace doppler::engine
