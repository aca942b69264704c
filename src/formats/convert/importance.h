// llama.cpp's importance matrices: for each matrix the mean square of every input column over a text, so that the
// quantisers keep best what is multiplied most. Two file formats: GGUF ("general.type" is "imatrix"), and the older
// .dat. Facts: llama.cpp tools/imatrix/README.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/convert/conversion.h"

namespace doppler::formats {

struct Importance {
  std::map<std::string, std::vector<float>>
      columns;       // by the tensor's GGUF name; of experts one vector after another
  std::string name;  // of the file
};

// The bytes of a file of either format. Errors: neither of the two, cut off, values that are negative or not finite.
Result<Importance> parse_importance(std::span<const uint8_t> bytes, const std::string& name);
Result<Importance> read_importance(const std::string& path);  // importance_native.cpp

// Gives every tensor its columns, also fused ones and those with Hugging Face's names. Notes the number of matrices
// without any. Errors: another column count; the file has no tensor of the output.
Result<> attach_importance(const Importance& importance, Conversion& conversion);

}  // namespace doppler::formats
