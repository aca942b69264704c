// What the rows of towers are made of.
#pragma once

#include <array>

#include "formats/architectures/architecture.h"

namespace doppler::formats::towers {

// A vector whose names have their own ends; read as it is.
constexpr TensorRow vector_row(TensorId id, std::string_view gguf, std::string_view huggingface,
                               Dim dim = Dim::kHidden) {
  return {.id = id,
          .gguf = gguf,
          .huggingface = huggingface,
          .shape = {dim},
          .gguf_suffix = "",
          .huggingface_suffix = "",
          .is_vector = true};
}

// The rows of a tower, then those of what joins it to a text model.
template <size_t N, size_t M>
constexpr std::array<TensorRow, N + M> joined(const TensorRow (&tower)[N], const TensorRow (&projector)[M]) {
  return [&]<size_t... I, size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
    return std::array<TensorRow, N + M>{tower[I]..., projector[J]...};
  }(std::make_index_sequence<N>(), std::make_index_sequence<M>());
}

}  // namespace doppler::formats::towers
