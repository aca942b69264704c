// table_rows and image_rows against sums made by hand, with a row after the last that must not change.
#include "kernels/image_rows/image_rows.h"

#include <bit>
#include <cmath>

#include "kernels/image_rows/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 4, kUsed = 3, kN = 77;

TEST(TableRows, EveryVariantMatchesTheSums) {
  constexpr uint32_t kEntries = 5, kTaps = 3;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kN, 1),
                           table = random_floats(size_t{kEntries} * kN, 2),
                           weights = random_floats(size_t{kMaxRows} * kTaps, 3);
  std::vector<uint32_t> taps;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    taps.push_back(i == 4 ? 99 : (3 * i) % kEntries);  // one outside the table
    taps.push_back(std::bit_cast<uint32_t>(weights[i]));
  }
  for_each_variant("table_rows", table_rows_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const TableRows op{.x = run.inout(x),
                       .table = run.input(table),
                       .taps = run.input(taps),
                       .n = kN,
                       .n_entries = kEntries,
                       .taps_each = kTaps};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kUsed);
    const std::vector<float> got = run.read<float>(op.x, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t row = i / kN, column = i % kN;
      double want = x[i], size = std::abs(x[i]);
      for (size_t tap = row * kTaps; row < kUsed && tap < (row + 1) * kTaps; ++tap) {
        const double term = double{weights[tap]} * table[std::min(taps[2 * tap], kEntries - 1) * kN + column];
        want += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(got[i], want, 1e-6 * size) << "row " << row << " column " << column;
    }
  });
}

TEST(ImageRows, EveryVariantPutsOrAddsThem) {
  constexpr uint32_t kImages = 2, kStride = 3 * kN, kColumn = kN + 1;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kN, 1),
                           images = random_floats(size_t{kImages} * kStride, 2);
  const std::vector<uint32_t> places = {1, kNoImage, 0, 0};
  for (const bool adds : {false, true}) {
    for_each_variant("image_rows", image_rows_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const ImageRows op{.x = run.inout(x),
                         .images = run.input(images),
                         .places = run.input(places),
                         .n = kN,
                         .n_images = kImages,
                         .stride = kStride,
                         .column = kColumn,
                         .adds = adds};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kUsed);
      const std::vector<float> got = run.read<float>(op.x, x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t row = i / kN;
        const bool stays = row >= kUsed || places[row] == kNoImage;
        const float image = stays ? 0 : images[places[row] * kStride + kColumn + i % kN];
        ASSERT_EQ(got[i], stays ? x[i] : adds ? x[i] + image : image) << "value " << i;
      }
    });
  }
}

TEST(MeanParts, EveryVariantMatchesTheMeans) {
  constexpr uint32_t kParts = 9;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kParts * kN, 1);
  for_each_variant("mean_parts", mean_parts_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const MeanParts op{
        .x = run.input(x), .y = run.output(uint64_t{kMaxRows} * kN * 4), .n = kN, .parts = kParts};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kUsed);
    const std::vector<float> got = run.read<float>(op.y, size_t{kUsed} * kN);
    for (size_t i = 0; i < got.size(); ++i) {
      double sum = 0, size = 0;
      for (size_t part = 0; part < kParts; ++part) {
        const double term = x[(i / kN * kParts + part) * kN + i % kN];
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(got[i], sum / kParts, 1e-6 * size) << "value " << i;
    }
  });
}

TEST(PatchValues, EveryVariantReadsThePicturesBytes) {
  constexpr uint32_t kEdge = 5, kColumns = 3, kLines = 2, kRowBytes = kColumns * kEdge * 3;
  std::vector<uint8_t> bytes(size_t{kLines} * kEdge * kRowBytes + 2);  // to whole words
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 251);
  const std::vector<float> levels = random_floats(3 * 256, 1);
  const std::vector<uint32_t> patches = {
      (kEdge * kRowBytes) + 2 * kEdge * 3, kRowBytes, 0, kRowBytes, kNoPatch, 0, 0, 0};
  for (const bool channels_last : {false, true}) {
    for (const uint32_t copies : {1u, 2u}) {
      const uint32_t n = 3 * copies * kEdge * kEdge;
      for_each_variant("patch_values", patch_values_variants(), [&](const Policy& policy) {
        KernelRun run(policy, kMaxRows);
        const std::vector<float> x(size_t{kMaxRows} * n, 7.0f);
        const PatchValues op{.pixels = run.input(bytes),
                             .patches = run.input(patches),
                             .levels = run.input(levels),
                             .x = run.inout(x),
                             .words = static_cast<uint32_t>(bytes.size() / 4),
                             .edge = kEdge,
                             .copies = copies,
                             .channels_last = channels_last};
        if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
        run.replay(kUsed);
        std::vector<float> want;
        for (uint32_t row = 0; row < kUsed; ++row) {
          const auto value = [&](uint32_t channel, uint32_t y, uint32_t column) {
            const size_t at = size_t{patches[2 * row]} + size_t{y} * kRowBytes + column * 3 + channel;
            return patches[2 * row] == kNoPatch ? 0.0f : levels[channel * 256 + bytes[at]];
          };
          for (uint32_t i = 0; i < n; ++i) {
            const uint32_t pixel = (channels_last ? i / 3 : i) % (kEdge * kEdge);
            want.push_back(value(channels_last ? i % 3 : i / (n / 3), pixel / kEdge, pixel % kEdge));
          }
        }
        want.resize(x.size(), 7.0f);
        ASSERT_EQ(run.read<float>(op.x, x.size()), want) << "channels last: " << channels_last;
      });
    }
  }
}

TEST(Clamp, EveryVariantKeepsTheLimits) {
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kN, 1), limits = {9, 9, -0.25f, 0.125f};
  for_each_variant("clamp", clamp_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const Clamp op{.x = run.input(x),
                   .y = run.output(uint64_t{kMaxRows} * kN * 4),
                   .limits = run.input(limits),
                   .n = kN,
                   .first = 2};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kUsed);
    const std::vector<float> got = run.read<float>(op.y, size_t{kUsed} * kN);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], std::clamp(x[i], limits[2], limits[3])) << i;
  });
}

TEST(Standardise, EveryVariantMatchesTheFormula) {
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kN, 1), mean = random_floats(kN, 2),
                           scale = random_floats(kN, 3);
  for_each_variant("standardise", standardise_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const Standardise op{.x = run.inout(x), .mean = run.input(mean), .scale = run.input(scale), .n = kN};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kUsed);
    const std::vector<float> got = run.read<float>(op.x, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t column = i % kN;
      const double want = i / kN >= kUsed ? x[i] : (double{x[i]} - mean[column]) * scale[column];
      ASSERT_NEAR(got[i], want, 1e-6 * (std::abs(x[i]) + std::abs(mean[column]))) << "value " << i;
    }
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
