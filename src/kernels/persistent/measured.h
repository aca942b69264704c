// The numbers of the lane persistent that measurements chose (common/measured.h).
#pragma once

#include "kernels/common/measured.h"

namespace doppler::kernels {

inline constexpr std::string_view kPersistentCommand =
    "doppler bench --synthetic SHAPE:q4_k_m -p 0 -n 128 -d DEPTH --no-tuning --lane persistent";

inline constexpr Measured<> kMostThreads = {.value = 512,  // of a workgroup
                                            .by = {.device = "H200",
                                                   .command = kPersistentCommand,
                                                   .date = "2026-11-21",
                                                   .result = "trial kernels: 1,024 were slower"}};
inline constexpr Measured<> kMostKeysAtOnce = {
    .value = 8,  // of a worker if a workgroup has one head: more if workers are few
    .by = {.device = "H200",
           .command = kPersistentCommand,
           .date = "2026-11-22",
           .result = "8 instead of 4 gave the 3B, whose heads are 128 long, 0.6 %"}};
// Heads of a workgroup that has a split: as many of a kv head as registers allow.
inline constexpr Measurement kHeadsOfSplits = {
    .device = "H200",
    .command = kPersistentCommand,
    .date = "2026-11-22",
    .result =
        "tok/s with two heads and four keys, all heads and two, all and four: 8B (groups of 4) 504, 500 at "
        "depth 2,048, "
        "441, 446, 432 at 8,192; 3B (of 3) 860, 851, 868 and 1B (of 4) 1,991, 1,951, 1,837 at 1,024"};
inline constexpr Measured<> kMostHeadsOfSplit = {.value = 3, .by = kHeadsOfSplits};
inline constexpr Measured<> kHeadsOfChunk = {.value = 2, .by = kHeadsOfSplits};

}  // namespace doppler::kernels
