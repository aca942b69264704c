// The chat of `run -i`: line editing and history (libedit), the conversation, a few commands.
#pragma once

#include <string>

#include "doppler/doppler.h"

namespace doppler::cli {

struct ChatOptions {
  GenerateOptions generate;
  std::string system;        // system message of a new conversation; empty: none
  bool use_template = true;  // false: what is typed continues the text
};

// A user's message with the pictures before the text.
Result<Message> user_message(std::string_view text, std::span<const std::string> image_files);

// Until end of input or /quit. A restored session goes on with its conversation.
Result<void> chat_at_terminal(Model& model, Session& session, const ChatOptions& options);

}  // namespace doppler::cli
