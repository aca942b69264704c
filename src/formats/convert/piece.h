// The work of a conversion, cut into pieces of bounded size that can be done in any order by several threads.
#pragma once

#include <span>
#include <vector>

#include "formats/convert/conversion.h"

namespace doppler::formats {

// All pieces of a tensor, in the order of its bytes. `numbers` is how many weights a piece may have; a row, a head
// whose rows change places, or a block over several rows is never cut. `whole`: a part is one piece.
void append_pieces(const OutTensor& tensor, uint32_t index, uint64_t numbers, bool whole,
                   std::vector<Piece>& out);

// Where the piece's bytes lie in its part's source tensor. Of a piece of columns: all of it.
struct SourceRange {
  uint64_t offset, bytes;  // from the tensor's first byte
};
SourceRange source_range(const OutTensor& tensor, const Piece& piece);

// The output's bytes of a piece from the source's. Errors: weights that are not finite.
Result<std::vector<uint8_t>> convert_piece(const OutTensor& tensor, const Piece& piece,
                                           std::span<const uint8_t> source);

}  // namespace doppler::formats
