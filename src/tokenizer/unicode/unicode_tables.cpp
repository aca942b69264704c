// Unpacks the generated tables. The contract is unicode_tables.h.
#include "tokenizer/unicode/unicode_tables.h"

#include <algorithm>
#include <cstring>

#include "tokenizer/unicode/unicode_data.h"

namespace doppler::tokenizer {
namespace {

// The rows of a table as structs of 32-bit members.
template <typename Row>
std::vector<Row> unpacked(const PackedTable& table) {
  constexpr size_t kColumns = sizeof(Row) / sizeof(uint32_t);
  std::vector<Row> rows(table.rows);
  const uint8_t* next = table.bytes;
  for (size_t column = 0; column < kColumns; ++column) {
    uint32_t value = 0;
    for (Row& row : rows) {
      uint32_t number = 0;
      for (uint32_t shift = 0;; shift += 7) {
        number |= static_cast<uint32_t>(*next & 0x7F) << shift;
        if (*next++ < 0x80) break;
      }
      value += (number >> 1) ^ (0 - (number & 1));
      std::memcpy(reinterpret_cast<char*>(&row) + column * sizeof value, &value, sizeof value);
    }
  }
  return rows;
}

UnicodeTables unpack_all() {
  return {.categories = unpacked<Step>(kCategorySteps),
          .combining_classes = unpacked<Step>(kCombiningSteps),
          .lower_runs = unpacked<LowerRun>(kLowerRuns),
          .compositions = unpacked<Composition>(kCompositions),
          .canonical = {unpacked<Decomposition>(kCanonical), unpacked<char32_t>(kCanonicalPool)},
          .compatibility = {unpacked<Decomposition>(kCompatibility), unpacked<char32_t>(kCompatibilityPool)}};
}

}  // namespace

const UnicodeTables& unicode_tables() {
  static const UnicodeTables tables = unpack_all();
  return tables;
}

uint32_t value_at(const std::vector<Step>& steps, char32_t code) {
  return std::ranges::upper_bound(steps, static_cast<uint32_t>(code), {}, &Step::first)[-1].value;
}

}  // namespace doppler::tokenizer
