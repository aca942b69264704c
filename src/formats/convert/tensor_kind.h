// The kind of a tensor by its name, in GGUF's and in Hugging Face's naming: its role, its layer, whether quantisation
// is for it, and the place in a load at which it is touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/quant/mix.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

struct TensorKind {
  RdrrRole role = RdrrRole::kWeights;
  TensorRole place = TensorRole::kOtherMatrix;
  std::optional<uint32_t> layer;
  // The tensor is of a folder's next-token layer ("mtp."), whose number the name does not say: layer is empty.
  bool is_next = false;
  bool quantisable =
      false;  // a matrix of the plain kind; routers, convolutions and tables of positions are not
  uint32_t load_rank = 0;  // within its layer, or among the tensors without one
  bool after_layers = false;
};

TensorKind tensor_kind(std::string_view name, size_t dimensions);

}  // namespace doppler::formats
