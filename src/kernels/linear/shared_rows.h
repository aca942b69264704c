// Rows that stand in more than one of the tables of products of several rows (matmul, matmul_skinny, matmul_narrow).
#pragma once

#include "kernels/linear/product.h"

namespace doppler::kernels {

// tile64 without the work of rows that are not there. lavapipe, 1280 x 512 in q4_k, CPU time: 8.9 G operations a
// second at 64 rows, as dp4a, and 1.5 times dp4a at 5 and 20 rows.
inline constexpr ProductTemplate kCpuRow = {
    .suffix = "cpu", .refuse = refuse_unless_cpu_and_eights, .algorithm = Algorithm::kTileOfCpu};
inline constexpr ProductTemplate kOnceDp4aRow = {.suffix = "once.dp4a",
                                                 .lane = Lane::kDp4a,
                                                 .needs = kNeedDp4a,
                                                 .refuse = refuse_unless_whole_units,
                                                 .algorithm = Algorithm::kOnce,
                                                 .q8 = true,
                                                 .tiled = true};
inline constexpr ProductTemplate kMatrixRow = {.suffix = "matrix",
                                               .lane = Lane::kMatrix,
                                               .needs = kNeedMatrix,
                                               .refuse = refuse_unless_matrix,
                                               .algorithm = Algorithm::kMatrix,
                                               .tiled = true,
                                               .f16 = true};
inline constexpr ProductTemplate kDp4aRow = {.suffix = "dp4a",
                                             .lane = Lane::kDp4a,
                                             .needs = kNeedDp4a,
                                             .refuse = refuse_unless_whole_units,
                                             .algorithm = Algorithm::kWorkgroup,
                                             .q8 = true};
inline constexpr ProductTemplate kSmallRow = {
    .suffix = "tile16", .refuse = refuse_unless_small, .algorithm = Algorithm::kSmallTile, .plain = true};
inline constexpr ProductTemplate kTile64Row = {
    .suffix = "tile64", .refuse = refuse_unless_eights, .algorithm = Algorithm::kTile};
inline constexpr ProductTemplate kPortableRow = {.suffix = "portable", .algorithm = Algorithm::kPortable};

}  // namespace doppler::kernels
