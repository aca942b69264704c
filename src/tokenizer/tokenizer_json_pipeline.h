// The small members of tokenizer.json (normalizer, pre_tokenizer, post_processor, decoder) as steps of a VocabSpec.
// Only tokenizer_json.cpp uses this, once tokens and added tokens are known.
#pragma once

#include "base/json_fwd.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

Result<> read_normaliser(const Json& node, VocabSpec& spec);
// `byte_level` is set when a ByteLevel step is there.
Result<> read_pre_tokenizer(const Json& node, VocabSpec& spec, bool& byte_level);
// Finds the ids around a text.
Result<> read_post_processor(const Json& node, VocabSpec& spec);
Result<> read_decoder(const Json& node, VocabSpec& spec);

}  // namespace doppler::tokenizer
