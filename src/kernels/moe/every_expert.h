// Routes that name all experts in their order for each row, with weight 1: products that heads have apart are experts'
// products.
#pragma once

#include "kernels/moe/routes.h"

namespace doppler::kernels {

struct EveryExpert {
  Routes y;  // n_used is n_experts, which may be any number
};
Result<void> record(Context& ctx, const EveryExpert& op);

}  // namespace doppler::kernels
