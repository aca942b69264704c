// Tools for models whose chat template knows none: the conversation itself tells of them, and calls are written as
// Hermes' models write them (hermes.cpp), so that every model that has a template can be made to call one. Read next:
// chat_prompt.h.
#pragma once

#include <functional>
#include <string>

#include "openai/chat_fields.h"

namespace doppler::openai {

// The chat without tools, of system, user and assistant messages only: earlier calls and their results are text, and
// the tools are told in the system message, or in the first user's where a template refuses the one or leaves it out.
// Gives the prompt that `render` makes of it. Errors: those of `render`.
Result<std::string> render_told_tools(ChatFields chat,
                                      const std::function<Result<std::string>(const ChatFields&)>& render);

}  // namespace doppler::openai
