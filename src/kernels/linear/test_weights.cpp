// test_weights.h: blocks are random bytes with scales of ordinary size; each is decoded by the definition of
// its format. Columns past k are padding and hold zeros, as formats/quant writes them.
#include "kernels/linear/test_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace doppler::kernels::testing {
namespace {

using Block = std::span<uint8_t>;

void put_half(Block bytes, size_t at, double value) {
  const uint16_t half = f32_to_f16(static_cast<float>(value));
  std::memcpy(&bytes[at], &half, 2);
}
double half_at(std::span<const uint8_t> bytes, size_t at) {
  uint16_t half;
  std::memcpy(&half, &bytes[at], 2);
  return f16_to_f32(half);
}

double scale(Random& random) { return 0.002 + 0.01 * random.uniform(); }

// Fills one block (or one number) of both planes and decodes it into `out`.
void decode_plain(WeightFormat format, Block p0, double value, std::span<double> out) {
  const auto narrow = static_cast<float>(value);
  if (format == WeightFormat::kF32) {
    std::memcpy(p0.data(), &narrow, 4);
    out[0] = narrow;
    return;
  }
  const bool brain = format == WeightFormat::kBF16;
  const uint16_t half = brain ? f32_to_bf16(narrow) : f32_to_f16(narrow);
  std::memcpy(p0.data(), &half, 2);
  out[0] = brain ? bf16_to_f32(half) : f16_to_f32(half);
}

void decode_q8_0(Block p0, Block p1, std::span<double> out) {
  for (size_t i = 0; i < 32; ++i) out[i] = half_at(p1, 0) * static_cast<int8_t>(p0[i]);
}

void decode_q4_0(Block p0, Block p1, std::span<double> out) {
  for (size_t i = 0; i < 16; ++i) {
    out[i] = half_at(p1, 0) * ((p0[i] & 15) - 8);
    out[i + 16] = half_at(p1, 0) * ((p0[i] >> 4) - 8);
  }
}

// q4_k, and with `fifth` bits q5_k.
void decode_k(Block p0, bool fifth, std::span<double> out) {
  const std::span<const uint8_t> s = p0.subspan(4, 12);
  const std::span<const uint8_t> quants = p0.subspan(fifth ? 48 : 16);
  for (size_t sub = 0; sub < 8; ++sub) {
    const int d = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
    const int m = sub < 4 ? s[sub + 4] & 63 : s[sub + 4] >> 4 | (s[sub] >> 6) << 4;
    for (size_t i = 0; i < 32; ++i) {
      int q = quants[32 * (sub / 2) + i] >> (4 * (sub % 2)) & 15;
      if (fifth) q += 16 * (p0[16 + i] >> sub & 1);
      out[32 * sub + i] = half_at(p0, 0) * d * q - half_at(p0, 2) * m;
    }
  }
}

void decode_q6_k(Block p0, Block p1, std::span<double> out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128, quarter = i / 32 % 4, j = i % 32;
    const int low = p0[64 * half + 32 * (quarter % 2) + j] >> (4 * (quarter / 2)) & 15;
    const int high = p0[128 + 32 * half + j] >> (2 * quarter) & 3;
    out[i] = half_at(p1, 0) * static_cast<int8_t>(p0[192 + i / 16]) * ((low | high << 4) - 32);
  }
}

// Unit `u` of row `row` of a tile format: random planes, decoded by the definition in base/dtype.h. A filling row
// stays zero.
class TileUnit {
 public:
  TileUnit(TestWeight& weight, uint32_t units, size_t row, size_t u)
      : weight_(weight),
        info_(weight_format_info(weight.format)),
        at_(row / 32 * units + u),
        row_(row % 32) {}

  void fill(Random& random, std::span<double> out) {
    for (uint32_t i = 0; i < info_.plane0_block_bytes; ++i)
      *byte(i) = static_cast<uint8_t>(random.next() >> 40);
    for (uint32_t i = 0; i < info_.plane1_block_bytes / 4; ++i) {
      put_word(i, static_cast<uint32_t>(random.next() >> 20));
    }
    if (info_.plane1_block_bytes > 0) {
      put_word(0, f32_to_f16(static_cast<float>(scale(random))) |
                      uint32_t{f32_to_f16(static_cast<float>(8 * scale(random)))} << 16);
    }
    for (size_t i = 0; i < 32; ++i)
      out[i] = weight_.format >= WeightFormat::kTileF16 ? number(i, random) : value(i);
  }

 private:
  uint8_t* byte(size_t i) {  // i counts the bytes of the unit's vec4s
    const size_t vec4s = info_.plane0_block_bytes / 16;
    return &weight_.plane0[((at_ * vec4s + i / 16) * 32 + row_) * 16 + i % 16];
  }
  uint8_t* word_at(size_t i) {
    return &weight_.plane1[((at_ * (info_.plane1_block_bytes / 4) + i) * 32 + row_) * 4];
  }
  void put_word(size_t i, uint32_t value) { std::memcpy(word_at(i), &value, 4); }
  uint32_t word(size_t i) {
    uint32_t value;
    std::memcpy(&value, word_at(i), 4);
    return value;
  }
  double half(int which) { return f16_to_f32(static_cast<uint16_t>(word(0) >> 16 * which)); }
  double number(size_t i, Random& random) {
    double out;
    decode_plain(weight_.format == WeightFormat::kTileBF16 ? WeightFormat::kBF16 : WeightFormat::kF16,
                 Block(byte(2 * i), 2), random.normal(), {&out, 1});
    return out;
  }
  double value(size_t i) {
    if (weight_.format == WeightFormat::kTileQ8) return half(0) * static_cast<int8_t>(*byte(i));
    const size_t j = i % 16 / 4, c = i % 4;
    int q = *byte(i % 16) >> (i < 16 ? 0 : 4) & 15;
    if (weight_.format == WeightFormat::kTileQ6) {
      q |= static_cast<int>(word(i < 16 ? 1 : 2) >> (8 * c + 2 * j) & 3) << 4;
      return half(i < 16 ? 0 : 1) * (q - 32);
    }
    if (weight_.format == WeightFormat::kTileQ5)
      q |= static_cast<int>(word(1) >> (8 * c + j + (i < 16 ? 0 : 4)) & 1) << 4;
    return half(0) * q - half(1);
  }

  TestWeight& weight_;
  const WeightFormatInfo& info_;
  size_t at_, row_;
};

void fill_block(WeightFormat format, Block p0, Block p1, Random& random, std::span<double> out) {
  for (uint8_t& byte : p0) byte = static_cast<uint8_t>(random.next() >> 40);
  if (!p1.empty()) put_half(p1, 0, scale(random));
  switch (format) {
    case WeightFormat::kQ8_0:
      return decode_q8_0(p0, p1, out);
    case WeightFormat::kQ4_0:
      return decode_q4_0(p0, p1, out);
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      put_half(p0, 0, scale(random));
      put_half(p0, 2, scale(random));
      return decode_k(p0, format == WeightFormat::kQ5_K, out);
    case WeightFormat::kQ6_K:
      return decode_q6_k(p0, p1, out);
    default:
      return decode_plain(format, p0, random.normal(), out);
  }
}

// Padding: q4_k and q5_k blocks store no exact zero beside other weights, so theirs is left as it came; the
// kernels must not depend on it where k ends inside a block (x counts as zero there).
void zero_padding(WeightFormat format, Block p0, size_t first, size_t count) {
  const WeightFormatInfo& info = weight_format_info(format);
  if (info.block_size != 1 || first < count) return;
  std::ranges::fill(p0, uint8_t{0});
}

}  // namespace

TestWeight random_weight(WeightFormat format, uint32_t n, uint32_t k, uint64_t seed) {
  const WeightFormatInfo& info = weight_format_info(format);
  const WeightLayout layout = weight_layout(format, n, k);
  TestWeight weight{.format = format, .n = n, .k = k};
  weight.plane0.resize(layout.padded_rows * layout.plane0_row_bytes);
  weight.plane1.resize(layout.padded_rows * layout.plane1_row_bytes);
  weight.values.resize(size_t{n} * k);
  Random random(seed);
  std::vector<double> block(info.block_size);
  const uint32_t blocks = layout.padded_k / info.block_size;
  for (size_t b = 0; b < size_t{n} * blocks; ++b) {
    const size_t row = b / blocks, first = b % blocks * info.block_size;
    const auto keep = [&] {
      for (size_t i = 0; i < block.size() && first + i < k; ++i)
        weight.values[row * k + first + i] = block[i];
    };
    if (info.tiled) {
      TileUnit(weight, blocks, row, b % blocks).fill(random, block);
      keep();
      continue;
    }
    const Block p0 = Block(weight.plane0).subspan(b * info.plane0_block_bytes, info.plane0_block_bytes);
    const Block p1 = Block(weight.plane1).subspan(b * info.plane1_block_bytes, info.plane1_block_bytes);
    fill_block(format, p0, p1, random, block);
    zero_padding(format, p0, first, k);
    keep();
  }
  return weight;
}

std::vector<uint8_t> TestWeight::piece(uint32_t first, uint32_t rows) const {
  const WeightLayout layout = weight_layout(format, rows, k);
  std::vector<uint8_t> bytes(layout.total_bytes);
  std::memcpy(bytes.data(), &plane0[first * layout.plane0_row_bytes],
              layout.padded_rows * layout.plane0_row_bytes);
  if (layout.plane1_offset != 0) {
    std::memcpy(&bytes[layout.plane1_offset], &plane1[first * layout.plane1_row_bytes],
                layout.padded_rows * layout.plane1_row_bytes);
  }
  return bytes;
}

Weight upload(KernelRun& run, const TestWeight& weight, uint32_t rows_per_piece) {
  Weight uploaded{.format = weight.format, .n = weight.n, .k = weight.k};
  uint32_t step = rows_per_piece == 0 ? weight.n : rows_per_piece;
  if (weight_format_info(weight.format).tiled) step = (step + kTileRows - 1) / kTileRows * kTileRows;
  for (uint32_t first = 0; first < weight.n; first += step) {
    const uint32_t rows = std::min(step, weight.n - first);
    uploaded.pieces.push_back({run.input(weight.piece(first, rows)), first, rows});
  }
  return uploaded;
}

std::vector<float> through_q8(const std::vector<float>& x) {
  std::vector<float> rounded(x.size());
  for (size_t block = 0; block + kQ8Block <= x.size(); block += kQ8Block) {
    float most = 0;
    for (size_t i = 0; i < kQ8Block; ++i) most = std::max(most, std::fabs(x[block + i]));
    const float d = most / 127.0f, inverse = most > 0 ? 127.0f / most : 0.0f;
    for (size_t i = 0; i < kQ8Block; ++i) rounded[block + i] = std::nearbyint(x[block + i] * inverse) * d;
  }
  return rounded;
}

std::vector<float> through_f16(const std::vector<float>& x) {
  std::vector<float> rounded;
  for (const float value : x) rounded.push_back(f16_to_f32(f32_to_f16(value)));
  return rounded;
}

TestWeight through_f16(const TestWeight& weight) {
  TestWeight rounded = weight;
  for (double& value : rounded.values) value = f16_to_f32(f32_to_f16(static_cast<float>(value)));
  return rounded;
}

std::vector<double> product(const TestWeight& weight, std::span<const float> x, uint32_t m) {
  std::vector<double> y(size_t{m} * weight.n);
  for (size_t row = 0; row < m; ++row) {
    for (size_t column = 0; column < weight.n; ++column) {
      double sum = 0;
      for (size_t i = 0; i < weight.k; ++i)
        sum += weight.values[column * weight.k + i] * x[row * weight.k + i];
      y[row * weight.n + column] = sum;
    }
  }
  return y;
}

}  // namespace doppler::kernels::testing
