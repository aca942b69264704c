// The chat templates of a checkpoint. Most have one. Some have others for conversations with tools or documents.
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

// Empty if `source` is.
ModelTemplate parse_template(std::string source);

struct ModelTemplates {
  ModelTemplate chat;
  std::map<std::string, ModelTemplate, std::less<>> named;  // "tool_use", "rag"

  // Chooses the template for a conversation.
  const ModelTemplate& choose(bool has_tools, bool has_documents) const;
};

// `given`: Jinja text that replaces the model's own, or empty. It is an error if this text does not parse. If the
// model's own does not parse, the result only notes it.
Task<Result<ModelTemplates>> load_templates(const formats::Checkpoint& checkpoint, std::string given);

}  // namespace doppler::engine
