// The number type that every tensor of the output gets: the mix, then the roles' own types, then the rules by name; and
// the fallback if a row is no multiple of the block. Not part of the WebAssembly build (name_rules_native.h).
#pragma once

#include "formats/convert/conversion.h"
#include "formats/convert/options.h"
#include "formats/quant/mix.h"

namespace doppler::formats {

// The mix of options.quantize; null: "keep". Error: an unknown word, with the known ones.
Result<const QuantMix*> mix_of(const ConvertOptions& options);

// Sets type and layout of all tensors, whose `type` is that of the source so far. Notes name every fallback.
// Errors: unknown types, a bad regular expression, one that matches no tensor, a type that a tensor cannot have.
Result<> choose_types(Conversion& conversion, const ConvertOptions& options);

}  // namespace doppler::formats
