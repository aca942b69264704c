// A chat's way to a model's tokens, for requests and for lines of batches. Read next: openai/formats/chat_prompt.h.
#pragma once

#include "batch/batch_run.h"
#include "engine/loaded_model.h"

namespace doppler::server {

// The fate of tools that the model's template does not know.
enum class UnknownTools : uint8_t { kRefused, kTold };

// Errors: the model has no tokenizer or no template, the template refuses the conversation or knows no tools.
Result<batch::ChatStart> start_chat(const engine::TextModel& text, const openai::ChatFields& chat,
                                    const Grammar& grammar, UnknownTools unknown);

// The same for any thread, also while the model is loaded again.
batch::StartChat chat_starter(Model& model, UnknownTools unknown);

// Gives a token's bytes, for any thread; empty without a tokenizer.
openai::TokenText token_text_of(Model& model);

}  // namespace doppler::server
