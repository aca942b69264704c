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

// Of rows whose place is not kNoImage: x[row] = image, or x[row] += image, where image is n columns of images[place]. A
// place outside the images is the last.
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

}  // namespace doppler::kernels
