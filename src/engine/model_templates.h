// The chat templates of a checkpoint: most have one, some have others beside it for conversations with tools or documents.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/task.h"
#include "formats/checkpoint.h"
#include "tokenizer/template/chat_template.h"

namespace doppler::engine {

struct ModelTemplate {
  std::string source;  // empty: none
  std::optional<tmpl::ChatTemplate> parsed;
  std::string problem;  // why it is not parsed although there is a source
};

struct ModelTemplates {
  ModelTemplate chat;
  std::map<std::string, ModelTemplate, std::less<>> named;  // "tool_use", "rag"

  // The one that a conversation goes through.
  const ModelTemplate& choose(bool has_tools, bool has_documents) const;
};

// `given`: Jinja text that replaces the model's own, or empty. One given that does not parse is an error; the model's own that
// does not parse is only noted.
Task<Result<ModelTemplates>> load_templates(const formats::Checkpoint& checkpoint, std::string given);

}  // namespace doppler::engine
