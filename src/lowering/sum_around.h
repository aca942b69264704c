// A sum of the residual stream and its surroundings, which add_rms_norm makes in one dispatch: found for that rule and
// for the operations that leave their summand to it.
#pragma once

#include "lowering/lowering.h"

namespace doppler::lowering {

struct SumAround {
  uint32_t add = 0;                                  // node
  Value branch;                                      // the summand, before its norm
  Value x;                                           // what it is added to, in place
  Value sum;                                         // after the scale, if there is one
  std::optional<uint32_t> branch_norm, scale, norm;  // nodes
  std::string norm_apart;                            // why the norm of the sum has a dispatch of its own
  std::string refusal;                               // why it cannot be one dispatch as a whole; "" if it can

  float branch_eps(const Lowering& l) const {
    return std::get<graph::RmsNorm>(l.node(*branch_norm).operation).eps;
  }
};
// index: an add node, or the norm of a summand. Nothing: there is no more around the sum than its residual.
std::optional<SumAround> find_sum_around(const Lowering& l, uint32_t index);

}  // namespace doppler::lowering
