// The numbers of products that measurements chose (common/measured.h), in this folder's folders and in moe/. 1B and
// 8B are Llama's shapes, synthetic, in Q4_K_M; "us" and "ms" are GPU times.
#pragma once

#include "kernels/common/measured.h"

namespace doppler::kernels {

// A matvec has whole tiles if they make so many workgroups, and half tiles otherwise.
inline constexpr Fill kEnoughTiles = {
    .each = 2,
    .by = {.device = "H200",
           .command = "doppler bench --synthetic llama-3.2-1b:q4_k_m -p 0 -n 128 -d 128 -r 4 --no-tuning",
           .date = "2026-11-21",
           .result = "1,751 tok/s with whole tiles for all products, 1,788 so"}};
inline constexpr Measured<> kMostTileInvocations = {
    .value = 512,
    .by = {.device = "H200",
           .command = "doppler bench --synthetic SHAPE -p 0 -n 128 -d 128",
           .date = "2026-11-21",
           .result =
               "up to 8, 16 and 32 slices of whole tiles, tok/s: 1B 1,431, 1,545, 1,446, 8B 456, 472, 463"}};
inline constexpr Measured<> kMostMatvecInvocations = {
    .value = 256,
    .by = {.device = "H200",
           .command = "kernel_bench --model 8b",
           .date = "2026-11-21",
           .result = "many small workgroups of 256 won in trials"}};

// 2 to 16 rows: whole tiles, or two weight rows an invocation, if they make so many workgroups. Each reads the whole x.
inline constexpr Fill kEnoughSkinny = {
    .each = 1,
    .by = {.device = "H200",
           .command = "kernel_bench --rows 2,8,16 --shape tile_q4:4096x14336 --shape tile_q4:28672x4096",
           .date = "2026-11-21",
           .result = "one for each unit, nearly"},
    .power_of_two = true};
// A product of so many workgroups needs no large ones.
inline constexpr Fill kFullSkinny = {
    .each = 2,
    .by = {.device = "H200",
           .command = "kernel_bench --rows 4,8 --shape tile_q4:28672x4096",
           .date = "2026-11-23",
           .result =
               "gate and up of the 8B with workgroups of 128: 2 us of 31 less with 4 rows, 1 of 46 with 8"}};
// Long columns of few weight rows: as many splits as make so many.
inline constexpr Fill kSplitSkinny = {
    .each = 2,
    .by = {.device = "H100",
           .command = "doppler bench --synthetic SHAPE -n 64 -d 512 --streams N",
           .date = "2026-11-26",
           .result = "with and without, tok/s: 8B (4096 x 14336) 4 streams 1,232 and 1,215; 1B (2048 x 8192) "
                     "4 streams 4,250 "
                     "and 4,080, 8 streams 6,980 and 6,370; columns of 4096 and less lose with 4 streams"}};
// Weight rows of an invocation share the x that is read, as long as so many workgroups remain.
inline constexpr Fill kSharedSkinny = {
    .each = 1,
    .by = {.device = "H100",
           .command = "linear_chain_bench",
           .date = "2026-11-26",
           .result =
               "8 rows, ms a step: 8B 3.51, with four rows of gate and up 3.37, with two of down (its splits "
               "four) 3.26; "
               "1B 0.849, with two of gate and up 0.834, with four 0.846; 2 and 4 rows of x gain nothing"}};
inline constexpr Measured<> kSlicesOfFew = {
    .value = 16,
    .by = {.device = "H200",
           .command = "kernel_bench --only few --set slices=N --rows 2,8",
           .date = "2026-11-23",
           .result = "6144, 4096 and 4096 x 14336 in tile_q4: the more subgroups the better up to 16 with "
                     "few rows of x"}};
inline constexpr Measured<> kSlicesOfMany = {
    .value = 8,
    .by = {.device = "H100",
           .command = "doppler bench --synthetic llama-3.1-8b -n 64 -d 512 --streams 8",
           .date = "2026-11-26",
           .result = "up to 8 with many rows of x; q, k and v in 96 workgroups that make two weight rows an "
                     "invocation 1,800 "
                     "tok/s, in 192 of one 1,877"}};
// Bytes of x in workgroup memory if some compute units have several workgroups. Otherwise x has twice as many.
inline constexpr Measured<> kBytesOfShared = {
    .value = 12288,
    .by = {.device = "H100",
           .command = "doppler bench --synthetic llama-3.1-8b -n 64 -d 512 --streams 4",
           .date = "2026-11-26",
           .result = "in 12 instead of 24 KiB, tok/s: q, k and v (192 workgroups) 1,196 to 1,216, output "
                     "(128) 1,196 to 1,189"}};

// The narrow product has so many workgroups of two subgroups at once: with two to four tiles of x, with one, and half.
inline constexpr Measurement kNarrowSweep = {
    .device = "H200",
    .command = "kernel_bench --only .narrow --set rows=N --set subgroups=N --set splits=N",
    .date = "2026-11-22",
    .result =
        "products of the 8B in tile_q4: 64 weight rows a subgroup; nearly as many workgroups as run at once, "
        "so that all "
        "end together; short splits only if it would run half empty without; one tile, 28672 x 4096: 896 "
        "workgroups "
        "take 3 us more than 448"};
inline constexpr Fill kNarrowAtOnce = {.each = 4, .by = kNarrowSweep};
inline constexpr Fill kNarrowAtOnceOfOne = {.each = 6, .by = kNarrowSweep};
inline constexpr Fill kNarrowHalf = {.each = 2, .by = kNarrowSweep};
// Registers of an invocation's weights: they fit twice beside the sums with two tiles of x.
inline constexpr Measured<> kMostUnitRegisters = {
    .value = 56,
    .by = {.device = "H100",
           .command = "linear_chain_bench",
           .date = "2026-11-27",
           .result = "8B, 16 and 32 rows 4.00 and 4.67 to 3.66 and 4.45 ms"}};
inline constexpr Measured<> kRowsOfDotProducts = {
    .value = 8,  // and fewer: 8-bit dot products are as fast as matrix units
    .by = {.device = "H200",
           .command = "kernel_bench --rows 2,4,8,16 --only dp4a,narrow",
           .date = "2026-11-22",
           .result = "trial kernels: a tie with 8 rows"}};

// The matrix product of a chunk has so many workgroups at once, and a step of one takes so many us. Other devices take
// other times, in the same order.
inline constexpr Measurement kMatrixSteps = {
    .device = "H200",
    .command = "kernel_bench --rows 512",
    .date = "2026-11-21",
    .result = "3072 x 2048, one on its unit, 16384 x 2048 two together"};
inline constexpr Fill kMatrixAtOnce = {.each = 2, .by = kMatrixSteps};
inline constexpr Measured<double> kUsOfStepAlone = {.value = 2.9, .by = kMatrixSteps};
inline constexpr Measured<double> kUsOfStepTogether = {.value = 4.5, .by = kMatrixSteps};

// Places of rows in the tables of products.
inline constexpr std::string_view kChainOf8B = "linear_chain_bench";
inline constexpr Finding kProductFindings[] = {
    {"matvec.q4_k.dp4a",
     {.device = "H200",
      .command = "kernel_bench --model 8b",
      .date = "2026-11-22",
      .result = "28672 x 4096: dp4a 33.0 us, dp4a.workgroup 34.5, subgroup 55.9, workgroup 60.4, portable "
                "90.3; in q6_k "
                "128256 x 4096: 148, 178, 208, 227, 374 us"}},
    {"matmul.q4_k.dp4a",
     {.device = "H200",
      .command = "kernel_bench --model 8b --rows 512",
      .date = "2026-11-22",
      .result = "28672 x 4096: dp4a 50.6 TFLOP/s, tile64 20.0"}},
    {"matmul.tile_q4.matrix",
     {.device = "H200",
      .command = "kernel_bench --rows 512",
      .date = "2026-11-21",
      .result = "16384 x 2048: 237 TFLOP/s, dp4a 57; with 8 rows still 1.9 times as fast as dp4a"}},
    {"matmul_narrow.tile_q4.narrow",
     {.device = "H200",
      .command = kChainOf8B,
      .date = "2026-11-22",
      .result = "8B, ms with 32 and 64 rows: narrow 4.67 and 6.41, matmul's matrix 12.3 and 13.4 (in plans "
                "of 512 rows 14.9 "
                "and 15.3), dp4a 42.5 with 32; 1B: narrow 1.26 and 1.63, matrix in plans of 512 rows 2.82 "
                "and 2.87"}},
    {"matmul_skinny.tile_q4.narrow",
     {.device = "H200",
      .command = kChainOf8B,
      .date = "2026-11-22",
      .result = "8B, ms with 16 rows: narrow 4.02, once.dp4a 6.38, dp4a 41.6"}},
    {"matmul_skinny.tile_q4.few.dp4a",
     {.device = "H200",
      .command = kChainOf8B,
      .date = "2026-11-22",
      .result = "8B, ms with 2, 4 and 8 rows, in plans of so many: few.dp4a, and once.dp4a if that is "
                "refused, 1.98, 2.44 "
                "and 3.46; only once.dp4a 2.21, 2.64 and 3.68; 2 and 4 rows in a plan of 8 2.84 and 2.86"}},
    {"matmul_skinny.tile_q4.few.dp4a",
     {.device = "H100",
      .command = kChainOf8B,
      .date = "2026-11-26",
      .result = "8B, ms with 8 rows, all products, and not only those of few outputs: 3.26 and 3.51"}},
    {"matmul_skinny.tile_q4.once.dp4a",
     {.device = "H200",
      .command = "kernel_bench --rows 2,8,16",
      .date = "2026-11-21",
      .result = "28672 x 4096, us: once.dp4a 26, 57, 82; once 73, 135, 268; matrix 182, 186, 192; dp4a 377, "
                "378, 382; 16-bit "
                "weights were not measured"}},
    {"expert_matvec.tile_q4.grouped.matrix",
     {.device = "H200",
      .command = "doppler bench --synthetic SHAPE -p 512",
      .date = "2026-11-23",
      .result = "tok/s with rows on their own (dp4a.tile, tile) and grouped: qwen3-30b-a3b 4,771 and 13,550, "
                "gpt-oss-20b 874 "
                "and 14,527, mixtral-8x7b 561 and 4,788 (docs/results/2026-11-23-h200-experts)"}},
};

}  // namespace doppler::kernels
