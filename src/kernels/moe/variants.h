// The rows of the tables of this folder, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/linear/product.h"
#include "kernels/moe/every_expert.h"
#include "kernels/moe/expert_norm.h"
#include "kernels/moe/expert_sum.h"
#include "kernels/moe/group_routes.h"
#include "kernels/moe/route.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<EveryExpert>> every_expert_variants();
std::span<const Variant<Route>> route_variants();
std::span<const Variant<GroupRoutes>> group_routes_variants();
std::span<const Variant<ExpertSum>> expert_sum_variants();
std::span<const Variant<ExpertNorm>> expert_norm_variants();
// Rows of one format, best first; names "expert_matvec.q4_k.tile". ProductShape::n is an expert's.
std::string expert_operation(WeightFormat format);  // "expert_matvec.q4_k"
std::span<const ProductRow> expert_matvec_variants(WeightFormat format);

}  // namespace doppler::kernels
