// Tools for models whose chat template knows no tools. The conversation describes the tools, and the model writes calls
// as Hermes' models do (hermes.cpp). So every model with a template can call tools. Read next: chat_prompt.h.
#pragma once

#include <functional>
#include <string>

#include "openai/chat_fields.h"

namespace doppler::openai {

// Gives `render` the chat without tools, with only system, user and assistant messages, and returns its prompt. Earlier
// calls and their results become text. The system message describes the tools. If a template refuses or drops that, the
// first user message describes them. Errors: those of `render`.
Result<std::string> render_told_tools(ChatFields chat,
                                      const std::function<Result<std::string>(const ChatFields&)>& render);

}  // namespace doppler::openai
