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

// The place of the piece's bytes in its part's source tensor. A piece of columns needs the whole tensor.
struct SourceRange {
  uint64_t offset, bytes;  // from the tensor's first byte
};
SourceRange source_range(const OutTensor& tensor, const Piece& piece);

// Weights that the output's type cannot hold: nan, infinities, and numbers beyond f16 in f16 or in blocks whose scales
// are f16.
struct Unfit {
  uint64_t count = 0;
  uint64_t row = 0, column = 0;  // of the first, in the output's tensor
  float value = 0;
};

struct ConvertedPiece {
  std::vector<uint8_t> bytes;  // empty if any weight is unfit
  Unfit unfit;
};

// The output's bytes of a piece from the source's. Tensors that keep type and numbers are copied, whatever they hold,
// and so are numbers that become f32.
Result<ConvertedPiece> convert_piece(const OutTensor& tensor, const Piece& piece,
                                     std::span<const uint8_t> source);

// Adds what another piece of the same tensor had.
void add_unfit(Unfit& sum, const Unfit& more);
// The sentence: the tensor, how many, where the first is, and what may be done.
Error unfit_error(const OutTensor& tensor, const Unfit& unfit);

}  // namespace doppler::formats
