// The tables of measured numbers (common/measured.h): each row tells its measurement and names variants that exist, and
// numbers of workgroups follow the device.
#include "kernels/attention/measured.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "kernels/catalogue.h"
#include "kernels/linear/measured.h"
#include "kernels/persistent/measured.h"

namespace doppler::kernels {
namespace {

const Fill* const kFills[] = {&kTargetWorkgroups, &kLeastUnsplit,      &kAtOnceOfFourKeys, &kMatrixWorkgroups,
                              &kEnoughTiles,      &kEnoughSkinny,      &kFullSkinny,       &kSplitSkinny,
                              &kSharedSkinny,     &kNarrowAtOnceOfOne, &kNarrowAtOnce,     &kNarrowHalf,
                              &kMatrixAtOnce};

const Measured<>* const kNumbers[] = {&kSplitHeads,           &kDecodeWorkgroup,     &kRowsWorkgroup,
                                      &kDecodeKeys,           &kSplitKeys,           &kKeysOfSeveralHeads,
                                      &kLeastKeysOfSplit,     &kMostTileInvocations, &kMostMatvecInvocations,
                                      &kSlicesOfFew,          &kSlicesOfMany,        &kBytesOfShared,
                                      &kMostUnitRegisters,    &kRowsOfDotProducts,   &kMostThreads,
                                      &kMostKeysAtOnce,       &kMostHeadsOfSplit,    &kHeadsOfChunk,
                                      &kMostInvocationsOfMany};

void expect_told(const Measurement& by) {
  SCOPED_TRACE(std::string(by.result));
  EXPECT_TRUE(std::regex_match(std::string(by.device), std::regex("H[12]0{2}"))) << by.device;
  EXPECT_TRUE(std::regex_match(std::string(by.date), std::regex("20[0-9]{2}-[0-9]{2}-[0-9]{2}"))) << by.date;
  const std::string program(by.command.substr(0, by.command.find(' ')));
  EXPECT_TRUE(program == "doppler" || program.ends_with("_bench")) << by.command;
  EXPECT_FALSE(by.result.empty());
}

gpu::Caps device_of(uint32_t units) {
  gpu::Caps caps;
  caps.compute_units = units;
  return caps;
}

TEST(Measured, RowsTellDeviceCommandAndDate) {
  for (const Fill* fill : kFills) expect_told(fill->by);
  for (const Measured<>* number : kNumbers) expect_told(number->by);
  for (const Finding& finding : kAttentionFindings) expect_told(finding.by);
  for (const Finding& finding : kProductFindings) expect_told(finding.by);
}

TEST(Measured, FindingsNameVariantsThatExist) {
  std::set<std::string> variants;
  for (const CatalogueRow& row : list_variants(gpu::Caps(), Policy())) variants.insert(row.variant);
  const auto expect_there = [&](const Finding& finding) {
    EXPECT_TRUE(variants.contains(std::string(finding.variant))) << finding.variant;
  };
  std::ranges::for_each(kAttentionFindings, expect_there);
  std::ranges::for_each(kProductFindings, expect_there);
}

TEST(Measured, WorkgroupsFollowTheComputeUnits) {
  struct Row {
    uint32_t units, target, at_once_of_four_keys, enough_tiles;
  };
  for (const auto& [units, target, four, tiles] :
       {Row{28, 32, 84, 56}, Row{114, 128, 342, 228}, Row{304, 512, 912, 608}}) {
    SCOPED_TRACE(units);
    EXPECT_EQ(kTargetWorkgroups.of(device_of(units)), target);
    EXPECT_EQ(kAtOnceOfFourKeys.of(device_of(units)), four);
    EXPECT_EQ(kEnoughTiles.of(device_of(units)), tiles);
  }
}

// The measured numbers are powers of two below one and two workgroups a compute unit.
TEST(Measured, TheDeviceThatWasMeasuredHasRoundNumbers) {
  const gpu::Caps measured = device_of(gpu::kAssumedComputeUnits);
  EXPECT_EQ(kTargetWorkgroups.of(measured), 256u);
  EXPECT_EQ(kLeastUnsplit.of(measured), 128u);
  EXPECT_EQ(kEnoughSkinny.of(measured), 128u);
  EXPECT_EQ(kNarrowAtOnceOfOne.of(measured), 792u);
}

TEST(Measured, ADeviceThatDoesNotTellIsTakenForTheOneThatWasMeasured) {
  for (const Fill* fill : kFills) {
    EXPECT_EQ(fill->of(device_of(0)), fill->of(device_of(gpu::kAssumedComputeUnits)));
    EXPECT_GE(fill->of(device_of(1)), 1u);
  }
}

}  // namespace
}  // namespace doppler::kernels
