// Checks and records what image_rows.h has. One row a table: all are bound by memory.
#include "kernels/image_rows/image_rows.h"

#include "kernels/common/dispatch.h"
#include "kernels/image_rows/clamp_portable.wgsl.h"
#include "kernels/image_rows/image_rows_portable.wgsl.h"
#include "kernels/image_rows/mean_parts_portable.wgsl.h"
#include "kernels/image_rows/patch_values_portable.wgsl.h"
#include "kernels/image_rows/standardise_portable.wgsl.h"
#include "kernels/image_rows/table_rows_portable.wgsl.h"
#include "kernels/image_rows/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kImageRowsMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<TableRows> kTableRows[] = {{"table_rows.portable"}};
constexpr Variant<ImageRows> kImageRows[] = {{"image_rows.portable"}};
constexpr Variant<MeanParts> kMeanParts[] = {{"mean_parts.portable"}};
constexpr Variant<PatchValues> kPatchValues[] = {{"patch_values.portable"}};
constexpr Variant<Clamp> kClamp[] = {{"clamp.portable"}};
constexpr Variant<Standardise> kStandardise[] = {{"standardise.portable"}};

uint64_t floats(uint64_t count) { return count * sizeof(float); }

// One invocation a value.
void set_grid(const Context& ctx, uint32_t n, Launch& launch) {
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), n, kImageRowsMostInvocations);
  launch.consts.push_back(u32_const("WORKGROUP", workgroup));
  launch.consts.push_back(u32_const("N", n));
  launch.grid = {.x = (n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
}

}  // namespace

std::span<const Variant<TableRows>> table_rows_variants() { return kTableRows; }
std::span<const Variant<ImageRows>> image_rows_variants() { return kImageRows; }
std::span<const Variant<MeanParts>> mean_parts_variants() { return kMeanParts; }
std::span<const Variant<PatchValues>> patch_values_variants() { return kPatchValues; }
std::span<const Variant<Clamp>> clamp_variants() { return kClamp; }
std::span<const Variant<Standardise>> standardise_variants() { return kStandardise; }

Result<void> record(Context& ctx, const TableRows& op) {
  if (op.n == 0 || op.n_entries == 0 || op.taps_each == 0) {
    return fail(ErrorKind::kInternal, "table_rows of %u values, %u entries and %u taps.", op.n, op.n_entries,
                op.taps_each);
  }
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * op.n), "x of table_rows"));
  DP_CHECK(check_view(op.table, floats(uint64_t{op.n_entries} * op.n), "the table of table_rows"));
  DP_CHECK(check_view(op.taps, 8ull * ctx.max_rows * op.taps_each, "the taps of table_rows"));
  DP_TRY(const auto row,
         select("table_rows", table_rows_variants(), op, format_text("%u x %u", op.n, op.taps_each), ctx));
  Launch launch{.variant = row->name,
                .entry = "image_rows/table_rows_portable",
                .layout = wgsl::table_rows_portable::kLayout};
  set_grid(ctx, op.n, launch);
  launch.consts.push_back(u32_const("N_ENTRIES", op.n_entries));
  launch.consts.push_back(u32_const("TAPS", op.taps_each));
  launch.bindings = {op.table, op.taps, op.x};
  launch.bytes = floats(op.n) * (op.taps_each + 2ull);
  launch.operations = 2ull * op.n * op.taps_each;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const ImageRows& op) {
  if (op.n == 0 || op.n_images == 0 || op.column + op.n > op.stride) {
    return fail(ErrorKind::kInternal, "image_rows of %u values from column %u of %u, and %u images.", op.n,
                op.column, op.stride, op.n_images);
  }
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * op.n), "x of image_rows"));
  DP_CHECK(check_view(op.images, floats(uint64_t{op.n_images} * op.stride), "the images of image_rows"));
  DP_CHECK(check_view(op.places, 4ull * ctx.max_rows, "the places of image_rows"));
  DP_TRY(const auto row, select("image_rows", image_rows_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "image_rows/image_rows_portable",
                .layout = wgsl::image_rows_portable::kLayout};
  set_grid(ctx, op.n, launch);
  launch.consts.push_back(u32_const("N_IMAGES", op.n_images));
  launch.consts.push_back(u32_const("STRIDE", op.stride));
  launch.consts.push_back(u32_const("COLUMN", op.column));
  launch.consts.push_back(bool_const("ADDS", op.adds));
  launch.bindings = {op.images, op.places, op.x};
  launch.bytes = floats(op.n) * 2;
  launch.operations = op.adds ? op.n : 0;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const MeanParts& op) {
  if (op.n == 0 || op.parts == 0) {
    return fail(ErrorKind::kInternal, "mean_parts of %u runs of %u values.", op.parts, op.n);
  }
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * op.n * op.parts), "x of mean_parts"));
  DP_CHECK(check_view(op.y, floats(uint64_t{ctx.max_rows} * op.n), "y of mean_parts"));
  DP_TRY(const auto row,
         select("mean_parts", mean_parts_variants(), op, format_text("%u x %u", op.parts, op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "image_rows/mean_parts_portable",
                .layout = wgsl::mean_parts_portable::kLayout};
  set_grid(ctx, op.n, launch);
  launch.consts.push_back(u32_const("PARTS", op.parts));
  launch.bindings = {op.x, op.y};
  launch.bytes = floats(op.n) * (op.parts + 1ull);
  launch.operations = uint64_t{op.n} * op.parts;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const PatchValues& op) {
  const uint32_t n = 3 * op.copies * op.edge * op.edge;
  if (n == 0 || op.words == 0) {
    return fail(ErrorKind::kInternal, "patch_values of %u x %u pixels, %u times, from %u words.", op.edge,
                op.edge, op.copies, op.words);
  }
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * n), "x of patch_values"));
  DP_CHECK(check_view(op.pixels, 4ull * op.words, "the pixels of patch_values"));
  DP_CHECK(check_view(op.patches, 8ull * ctx.max_rows, "the patches of patch_values"));
  DP_CHECK(check_view(op.levels, floats(3 * 256), "the levels of patch_values"));
  DP_TRY(const auto row, select("patch_values", patch_values_variants(), op,
                                format_text("%u x %u", op.edge, op.copies), ctx));
  Launch launch{.variant = row->name,
                .entry = "image_rows/patch_values_portable",
                .layout = wgsl::patch_values_portable::kLayout};
  set_grid(ctx, n, launch);
  launch.consts.push_back(u32_const("EDGE", op.edge));
  launch.consts.push_back(u32_const("WORDS", op.words));
  launch.consts.push_back(bool_const("CHANNELS_LAST", op.channels_last));
  launch.bindings = {op.pixels, op.patches, op.levels, op.x};
  launch.bytes = floats(n) + n / op.copies;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const Clamp& op) {
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * op.n), "x of clamp"));
  DP_CHECK(check_view(op.y, floats(uint64_t{ctx.max_rows} * op.n), "y of clamp"));
  DP_CHECK(check_view(op.limits, floats(uint64_t{op.first} + 2), "the limits of clamp"));
  DP_TRY(const auto row, select("clamp", clamp_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{
      .variant = row->name, .entry = "image_rows/clamp_portable", .layout = wgsl::clamp_portable::kLayout};
  set_grid(ctx, op.n, launch);
  launch.consts.push_back(u32_const("FIRST", op.first));
  launch.bindings = {op.x, op.limits, op.y};
  launch.bytes = floats(op.n) * 2;
  launch.operations = 2ull * op.n;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const Standardise& op) {
  DP_CHECK(check_view(op.x, floats(uint64_t{ctx.max_rows} * op.n), "x of standardise"));
  for (const TensorView& view : {op.mean, op.scale})
    DP_CHECK(check_view(view, floats(op.n), "the numbers of standardise"));
  DP_TRY(const auto row, select("standardise", standardise_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "image_rows/standardise_portable",
                .layout = wgsl::standardise_portable::kLayout};
  set_grid(ctx, op.n, launch);
  launch.bindings = {op.mean, op.scale, op.x};
  launch.bytes = floats(op.n) * 2;
  launch.operations = 2ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
