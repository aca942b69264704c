// From rows as a file stores them to the tile formats (base/dtype.h). Every block type becomes units of 32 codes with
// two half-precision numbers; a unit's codes go to its place among the 32 rows of its tile. Products of scales
// (q4_k, q5_k, q6_k, q3_k) round to f16: at most 2^-11 of the scale, far below the type's own step.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/codec.h"
#include "formats/quant/families.h"
#include "formats/quant/k_scales.h"
#include "formats/quant/repack.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

struct Unit {
  uint8_t codes[32];  // tile_q8: int8
  uint16_t half[2];   // scale and min; tile_q6: the scales of both halves
};

float half_at(const uint8_t* at) { return f16_to_f32(load_le<uint16_t>(at)); }

// A product of scales as f16; a hostile one stays finite.
uint16_t to_half(float value) {
  constexpr float kMost = 65504.0f;
  return f32_to_f16(value > kMost ? kMost : value < -kMost ? -kMost : value);
}

void unpack_nibbles(const uint8_t* nibbles, uint8_t codes[32]) {
  for (size_t i = 0; i < 16; ++i) {
    codes[i] = nibbles[i] & 0xF;
    codes[i + 16] = nibbles[i] >> 4;
  }
}
void add_fifth_bits(const uint8_t* bits, uint8_t codes[32]) {
  const auto fifth = load_le<uint32_t>(bits);
  for (size_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | ((fifth >> i & 1) << 4));
}

void unpack_q4_0(const uint8_t* block, Unit* unit) {
  unpack_nibbles(block + 2, unit->codes);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = to_half(8 * half_at(block));
}
void unpack_q4_1(const uint8_t* block, Unit* unit) {
  unpack_nibbles(block + 4, unit->codes);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = load_le<uint16_t>(block + 2) ^ 0x8000u;  // w = d*q + m
}
void unpack_q5_0(const uint8_t* block, Unit* unit) {
  unpack_nibbles(block + 6, unit->codes);
  add_fifth_bits(block + 2, unit->codes);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = to_half(16 * half_at(block));
}
void unpack_q5_1(const uint8_t* block, Unit* unit) {
  unpack_nibbles(block + 8, unit->codes);
  add_fifth_bits(block + 4, unit->codes);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = load_le<uint16_t>(block + 2) ^ 0x8000u;
}
void unpack_q8_0(const uint8_t* block, Unit* unit) {
  std::memcpy(unit->codes, block + 2, 32);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = 0;
}
void unpack_iq4_nl(const uint8_t* block, Unit* unit) {
  int8_t codes[32];
  quant::unpack_iq4_nl_codes(block, codes);
  std::memcpy(unit->codes, codes, 32);
  unit->half[0] = load_le<uint16_t>(block);
  unit->half[1] = 0;
}

// w = 2^(e - 128) * level, levels of -12 to 12: codes of level + 12. Scales that f16 does not hold: below 2^-24 the
// levels are rounded to multiples of that, above 2^12 the scale is that.
void unpack_mxfp4(const uint8_t* block, Unit* unit) {
  constexpr int kLeast = -24, kMost = 12, kOffset = 12;
  const int exponent = block[0] - 128;
  const int scale = std::clamp(exponent, kLeast, kMost);
  int8_t levels[32];
  quant::unpack_mxfp4_levels(block, levels);
  for (size_t i = 0; i < 32; ++i) {
    const float level = exponent < kLeast
                            ? std::nearbyint(std::ldexp(static_cast<float>(levels[i]), exponent - kLeast))
                            : static_cast<float>(levels[i]);
    unit->codes[i] = static_cast<uint8_t>(static_cast<int>(level) + kOffset);
  }
  unit->half[0] = to_half(std::ldexp(1.0f, scale));
  unit->half[1] = to_half(std::ldexp(static_cast<float>(kOffset), scale));
}

// q4_k, and with `fifth` bits q5_k.
void unpack_groups(const uint8_t* block, const uint8_t* fifth, const uint8_t* quants, Unit* units) {
  const float d = half_at(block), dmin = half_at(block + 2);
  for (size_t group = 0; group < 8; ++group) {
    Unit& unit = units[group];
    const quant::ScaleMin packed = quant::unpack_scale_min(block + 4, group);
    unit.half[0] = to_half(d * static_cast<float>(packed.scale));
    unit.half[1] = to_half(dmin * static_cast<float>(packed.min));
    const uint8_t* nibbles = quants + 32 * (group / 2);
    const size_t shift = 4 * (group % 2);
    for (size_t i = 0; i < 32; ++i) unit.codes[i] = nibbles[i] >> shift & 0xF;
    if (!fifth) continue;
    for (size_t i = 0; i < 32; ++i) {
      unit.codes[i] = static_cast<uint8_t>(unit.codes[i] | ((fifth[i] >> group & 1) << 4));
    }
  }
}
void unpack_q4_k(const uint8_t* block, Unit* units) { unpack_groups(block, nullptr, block + 16, units); }
void unpack_q5_k(const uint8_t* block, Unit* units) { unpack_groups(block, block + 16, block + 48, units); }

void unpack_q6_k(const uint8_t* block, Unit* units) {
  const float d = half_at(block + 208);
  for (size_t u = 0; u < 8; ++u) {
    const size_t n = u / 4, j = u % 4;
    const uint8_t* low = block + 64 * n + 32 * (j % 2);
    const uint8_t* high = block + 128 + 32 * n;
    for (size_t i = 0; i < 32; ++i) {
      units[u].codes[i] =
          static_cast<uint8_t>((low[i] >> (4 * (j / 2)) & 0xF) | ((high[i] >> (2 * j) & 3) << 4));
    }
    for (size_t half = 0; half < 2; ++half) {
      units[u].half[half] = to_half(d * static_cast<float>(load_le<int8_t>(block + 192 + 2 * u + half)));
    }
  }
}
void unpack_q3_k(const uint8_t* block, Unit* units) {
  int8_t codes[256], scales[16];
  quant::unpack_q3_k_codes(block, codes, scales);
  const float d = half_at(block + 108);
  for (size_t i = 0; i < 256; ++i) units[i / 32].codes[i % 32] = static_cast<uint8_t>(codes[i] + 32);
  for (size_t i = 0; i < 16; ++i) units[i / 2].half[i % 2] = to_half(d * static_cast<float>(scales[i]));
}

using UnpackBlock = void (*)(const uint8_t* block, Unit* units);
// Types that become units of codes on the way to DTypeInfo::tiles. The others become 16-bit numbers, as stored or
// through float.
struct Unpacker {
  DType from;
  UnpackBlock unpack;
};
constexpr Unpacker kUnpackers[] = {
    {DType::kQ4_0, unpack_q4_0},     {DType::kQ4_1, unpack_q4_1},   {DType::kQ4_K, unpack_q4_k},
    {DType::kQ5_0, unpack_q5_0},     {DType::kQ5_1, unpack_q5_1},   {DType::kQ5_K, unpack_q5_k},
    {DType::kQ3_K, unpack_q3_k},     {DType::kQ6_K, unpack_q6_k},   {DType::kQ8_0, unpack_q8_0},
    {DType::kIQ4_NL, unpack_iq4_nl}, {DType::kMXFP4, unpack_mxfp4},
};

UnpackBlock unpacker_of(DType type) {
  for (const Unpacker& row : kUnpackers) {
    if (row.from == type) return row.unpack;
  }
  return nullptr;
}

// Writes one unit to its place: `at` counts units of all rows of the piece, tile by tile.
struct Planes {
  uint8_t* plane0;
  uint8_t* plane1;

  void put(WeightFormat format, const Unit& unit, size_t at, size_t row) const {
    const size_t vec4s = format == WeightFormat::kTileQ8 ? 2 : 1;
    uint8_t* vec4 = plane0 + (at * vec4s * kTileRows + row) * 16;
    const uint32_t halves = unit.half[0] | uint32_t{unit.half[1]} << 16;
    if (format == WeightFormat::kTileQ8) {
      std::memcpy(vec4, unit.codes, 16);
      std::memcpy(vec4 + size_t{kTileRows} * 16, unit.codes + 16, 16);
      put_words<1>({halves}, at, row);
      return;
    }
    for (size_t i = 0; i < 16; ++i) {
      vec4[i] = static_cast<uint8_t>((unit.codes[i] & 0xF) | (unit.codes[i + 16] & 0xF) << 4);
    }
    if (format == WeightFormat::kTileQ4) put_words<1>({halves}, at, row);
    if (format == WeightFormat::kTileQ5) put_words<2>({halves, fifth_bits(unit)}, at, row);
    if (format == WeightFormat::kTileQ6) {
      put_words<3>({halves, bit_pairs(unit.codes), bit_pairs(unit.codes + 16)}, at, row);
    }
  }

 private:
  template <size_t kCount>
  void put_words(const std::array<uint32_t, kCount>& words, size_t at, size_t row) const {
    for (size_t p = 0; p < kCount; ++p) {
      std::memcpy(plane1 + ((at * kCount + p) * kTileRows + row) * 4, &words[p], 4);
    }
  }
  static uint32_t fifth_bits(const Unit& unit) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t j = i % 16 / 4, c = i % 4;
      bits |= uint32_t{unit.codes[i]} >> 4 << (8 * c + j + (i < 16 ? 0 : 4));
    }
    return bits;
  }
  static uint32_t bit_pairs(const uint8_t codes[16]) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 16; ++i) bits |= uint32_t{codes[i]} >> 4 << (8 * (i % 4) + 2 * (i / 4));
    return bits;
  }
};

// Numbers of 16 bits: four vec4 a unit.
void put_numbers(const uint8_t* numbers, size_t units, size_t tile, size_t row, uint8_t* plane0) {
  for (size_t i = 0; i < units * 4; ++i) {
    std::memcpy(plane0 + ((tile * units * 4 + i) * kTileRows + row) * 16, numbers + 16 * i, 16);
  }
}

}  // namespace

std::optional<WeightFormat> tile_format(DType type, uint64_t k) {
  if (k == 0 || k % kTileRows != 0) return std::nullopt;
  return dtype_info(type).tiles;
}

Result<WeightFormat> device_format(DType type, uint64_t k, LayoutPolicy policy) {
  if (policy.tiles) {
    if (const auto tiles = tile_format(type, k)) return *tiles;
  }
  return device_format(type, policy.exact);
}

Result<> repack_tiles(DType from, const uint8_t* src, uint64_t first_row, uint64_t rows, uint64_t k,
                      uint8_t* plane0, uint8_t* plane1) {
  const DTypeInfo& type = dtype_info(from);
  if (!type.tiles || k == 0 || k % kTileRows != 0 || k % type.block_size != 0) {
    return fail(ErrorKind::kUnsupported, "Rows of %llu weights of type %s cannot be laid out in tiles.",
                static_cast<Ull>(k), type.name);
  }
  const auto units = static_cast<size_t>(k / kTileRows);
  const auto row_bytes = static_cast<size_t>(bytes_of(from, k));
  std::vector<float> values;
  std::vector<uint8_t> numbers;
  const UnpackBlock unpack = unpacker_of(from);
  if (!unpack && type.tiles == WeightFormat::kTileF16 && from != DType::kF16) {
    values.resize(k);
    numbers.resize(k * 2);
  }
  const size_t units_of_block = type.block_size / kTileRows;
  const Planes planes{plane0, plane1};
  Unit unpacked[8];
  for (uint64_t r = first_row; r < first_row + rows; ++r, src += row_bytes) {
    const auto tile = static_cast<size_t>(r / kTileRows), row = static_cast<size_t>(r % kTileRows);
    if (!unpack) {
      if (!values.empty()) {
        DP_CHECK(dequantise(from, src, values.data(), k));
        DP_CHECK(quantise(DType::kF16, values.data(), numbers.data(), k));
      }
      put_numbers(values.empty() ? src : numbers.data(), units, tile, row, plane0);
      continue;
    }
    const uint8_t* block = src;
    for (size_t u = 0; u < units; u += units_of_block, block += type.block_bytes) {
      unpack(block, unpacked);
      for (size_t i = 0; i < units_of_block; ++i) {
        planes.put(*type.tiles, unpacked[i], tile * units + u + i, row);
      }
    }
  }
  return {};
}

}  // namespace doppler::formats
