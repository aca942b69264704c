// Rows of models that see, in f32. Errors: relative L2 below 1e-6, or exact.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

// x[row] += the sum over i < taps of weight * table[entry], (entry, weight) of tap i of the row: learned positions of a
// table that is resampled to another size. An entry outside the table is its last.
struct TableRows {
  TensorView x;      // f32 [rows, n]
  TensorView table;  // f32 [n_entries, n]
  TensorView taps;   // [rows, taps] of (u32, f32)
  uint32_t n = 0, n_entries = 0, taps_each = 1;
};
Result<void> record(Context& ctx, const TableRows& op);

inline constexpr uint32_t kNoImage = 0xFFFFFFFF;

// x[row] = image, or x[row] += image, where image is n columns of images[place]. Rows whose place is kNoImage do not
// change. A place outside the images is the last.
struct ImageRows {
  TensorView x;       // f32 [rows, n]
  TensorView images;  // f32 [n_images, stride]
  TensorView places;  // u32 [rows]
  uint32_t n = 0, n_images = 0;
  uint32_t stride = 0, column = 0;
  bool adds = false;
};
Result<void> record(Context& ctx, const ImageRows& op);

// y[row] = the mean of the `parts` runs of n values of x[row].
struct MeanParts {
  TensorView x;  // f32 [rows, parts * n]
  TensorView y;  // f32 [rows, n]
  uint32_t n = 0, parts = 1;
};
Result<void> record(Context& ctx, const MeanParts& op);

inline constexpr uint32_t kNoPatch = 0xFFFFFFFF;

// x[row] = the values of a square patch of an 8-bit RGB picture: levels[channel][byte] for each of its bytes, `copies`
// times, in the order of channel, copy, y, x, or copy, y, x, channel. A byte outside the picture is one of its last
// word. A patch whose first byte is kNoPatch has zeros.
struct PatchValues {
  TensorView pixels;   // u8, `words` times 4
  TensorView patches;  // [rows] of (u32 first byte, u32 bytes of a row of the picture)
  TensorView levels;   // f32 [3, 256]
  TensorView x;        // f32 [rows, 3 * copies * edge * edge]
  uint32_t words = 0, edge = 0, copies = 1;
  bool channels_last = false;
};
Result<void> record(Context& ctx, const PatchValues& op);

// y = x, but at least limits[first] and at most limits[first + 1]. Exact.
struct Clamp {
  TensorView x, y;    // f32 [rows, n]
  TensorView limits;  // f32 [first + 2, or more]
  uint32_t n = 0, first = 0;
};
Result<void> record(Context& ctx, const Clamp& op);

// In place: x = (x - mean) * scale.
struct Standardise {
  TensorView x;            // f32 [rows, n]
  TensorView mean, scale;  // f32 [n]
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const Standardise& op);

}  // namespace doppler::kernels
