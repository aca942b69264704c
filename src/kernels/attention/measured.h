// The numbers of attention that measurements chose (common/measured.h). 1B, 3B and 8B are Llama's shapes, synthetic, in
// Q4_K_M; "us" are GPU times of single dispatches.
#pragma once

#include "kernels/common/measured.h"

namespace doppler::kernels {

inline constexpr std::string_view kStreamsCommand =
    "doppler bench --synthetic SHAPE -n 64 -d 512 --streams N";

// Decode: workgroups for which the keys are split.
inline constexpr Fill kTargetWorkgroups = {
    .each = 2,
    .by = {.device = "H200",
           .command = "doppler bench --synthetic llama-3.1-8b -p 0 -n 128 -d 8192",
           .date = "2026-11-21",
           .result =
               "128, 256 and 512 workgroups: 354, 376 and 373 tok/s; with 256 invocations each 383 (256) "
               "and 346 (512)"},
    .power_of_two = true};
// Workgroups without splits that take up to kShortKeysOfRows keys each; fewer take up to kShortKeys.
inline constexpr Fill kLeastUnsplit = {.each = 1,
                                       .by = {.device = "H100",
                                              .command = kStreamsCommand,
                                              .date = "2026-11-28",
                                              .result = "see attention_skinny.rope.single"},
                                       .power_of_two = true};
// Workgroups of rows with large heads that run at once with four keys each. If there are more, two keys are faster:
// then a compute unit runs four workgroups.
inline constexpr Fill kAtOnceOfFourKeys = {
    .each = 3,
    .by = {
        .device = "H100",
        .command = kStreamsCommand,
        .date = "2026-11-26",
        .result =
            "four and two keys: 64 streams of the 8B 6,565 and 7,024 tok/s, of the 1B 23,480 and 25,440; 32 "
            "streams of the 8B, which all run, 5,040 and 4,895"}};
// Workgroups of attention_prefill_matrix.wgsl that run at once with eight subgroups.
inline constexpr Fill kMatrixWorkgroups = {
    .each = 1,
    .by = {
        .device = "H200",
        .command = "attention_bench",
        .date = "2026-11-22",
        .result =
            "512 rows, four and eight subgroups: 32 heads of 64 after 15,872 keys 464 and 553 us, four "
            "heads of "
            "256 after 4,096 186 and 232; 32 heads of 128, one workgroup a unit with eight, 1,011 and 735"}};

inline constexpr Measured<> kSplitHeads = {
    .value = 2,  // query heads of a workgroup of attention_decode.rope.split
    .by = {
        .device = "H200",
        .command = "doppler bench --synthetic llama-3.1-8b -p 0 -n 128 -d 8192 -r 3 --ctx 8704 --no-tuning",
        .date = "2026-11-21",
        .result = "391 tok/s with 2 query heads a workgroup, 387 with 4"}};
inline constexpr Measured<> kDecodeWorkgroup = {
    .value = 256,  // invocations
    .by = {.device = "H200",
           .command = "doppler bench --synthetic SHAPE -p 0 -n 128 -d 128 -r 4 --no-tuning",
           .date = "2026-11-21",
           .result = "with 128 gemma-3-1b lost 12 % and the 1B 2.5 %, with 512 neither gained"}};
inline constexpr Measured<> kRowsWorkgroup = {
    .value = 128,  // of each of several rows
    .by = {.device = "H200",
           .command = kStreamsCommand,
           .date = "2026-11-23",
           .result = "8B, tok/s with 256 and 128: 4 streams 1,188 and 1,238, 16 2,900 and 3,019, 64 6,655 "
                     "and 6,760. Keys "
                     "asked for while others are used gained 0.4 % at most, and lost 7 % of one stream's"}};
inline constexpr Measured<> kDecodeKeys = {
    .value = 8,  // at once, of a workgroup of one head
    .by = {.device = "H200",
           .command = "doppler bench --synthetic SHAPE -p 0 -n 128 -d 128 -r 4 --no-tuning",
           .date = "2026-11-21",
           .result = "four and eight in attention_decode.rope.single: 1B 1,810 and 1,839 tok/s, gemma-3-1b "
                     "1,029 and 1,039"}};
inline constexpr Measured<> kSplitKeys = {
    .value = 8,  // at once, of attention_decode.rope.split
    .by = {.device = "H200",
           .command = "attention_bench",
           .date = "2026-11-22",
           .result = "8B, us of its two dispatches with 4 and 8: after 8,191 keys 32.1 and 30.2, after "
                     "31,999 70.1 and "
                     "62.3, after 129,999 198 and 168 (reading keys and values takes 127)"}};
inline constexpr Measured<> kKeysOfSeveralHeads = {
    .value = 4,  // at once, of rows without splits
    .by = {.device = "H100",
           .command = kStreamsCommand,
           .date = "2026-11-28",
           .result = "16 streams of the 8B 3,427 tok/s with four and 3,395 with eight"}};
inline constexpr Measured<> kLeastKeysOfSplit = {
    .value = 32,  // a share is whole turns of the loop
    .by = {.device = "H100",
           .command = "doppler bench --synthetic SHAPE -p 0 -n 128 -d 512,1500",
           .date = "2026-11-27",
           .result =
               "shares of at least 64 keys in steps of 8, and of whole turns, tok/s: 1B (256 keys) 1,356 and "
               "1,410, "
               "1,332 and 1,420; qwen3-4b (128) 527 and 542, 522 and 518; 8B (128) 392 and 397, 388 and 388; "
               "gemma-3-4b (64) the same, and 3 % slower with 128"}};

// Places of rows in the tables of variants.cpp, and why few rows go to tiles (attention.cpp, goes_row_by_row).
inline constexpr Finding kAttentionFindings[] = {
    {"attention_decode.rope.few_splits",
     {.device = "H200",
      .command = "doppler bench --synthetic SHAPE -p 0 -n 128 -d 128 -r 5 --no-tuning",
      .date = "2026-11-21",
      .result = "gemma-3-1b, four heads of 256, 1,168 tok/s in .single and 1,258 so; 1B, 32 heads of 64, "
                "1,849 and 1,776"}},
    {"attention_prefill.matrix",
     {.device = "H200",
      .command = "attention_bench",
      .date = "2026-11-22",
      .result =
          "512 rows of 32 heads of 128, TFLOP/s at the begin and after 15,872 keys: 45 and 134 with rows of "
          "subgroups apart, 55 and 185 with pairs"}},
    {"attention_prefill.matrix",
     {.device = "H100",
      .command = "attention_bench",
      .date = "2026-11-25",
      .result = "8B, us a layer of 32 rows after 127, 1,023 and 8,191 keys: row by row 29, 57, 265, so 20, "
                "46, 264"}},
    {"attention_prefill.rows32",
     {.device = "H200",
      .command = "attention_bench",
      .date = "2026-11-21",
      .result = "512 rows: 32 heads of 64 in half the time of portable, of 128 in 2.5 times as much"}},
    {"attention_skinny.rope.single",
     {.device = "H100",
      .command = kStreamsCommand,
      .date = "2026-11-28",
      .result = "tok/s of .rope.split and so: 8B, 4, 8 and 16 streams 1,228 and 1,256, 1,942 and 2,001, "
                "3,331 and 3,417; "
                "1B 4,235 and 4,427, 6,875 and 7,270, 11,315 and 11,622 "
                "(docs/results/2026-11-28-h100-short-rows)"}},
};

}  // namespace doppler::kernels
