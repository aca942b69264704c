// The state buffer of plans for many sequences on the CPU (common/step_tables.h): a test uploads it before a kernel and
// compares it after it.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "kernels/common/step_tables.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {

// A pair of the tables `sampled` and `rows`.
struct SlotEntry {
  uint32_t slot = 0;
  uint32_t value = 0;  // row, or position
  bool operator==(const SlotEntry&) const = default;
};

struct TablesImage {
  StepTables tables;
  std::vector<uint8_t> bytes;  // all 0 at first

  explicit TablesImage(StepTables of) : tables(of), bytes(of.bytes()) {}

  StepState& state() { return *at<StepState>(0); }
  StepState& sampled_state() { return *at<StepState>(StepTables::sampled_state()); }
  StepRequest& request() { return *at<StepRequest>(StepTables::request()); }
  SlotEntry& sampled(uint32_t i) { return at<SlotEntry>(StepTables::sampled())[i]; }
  SlotEntry& row(uint32_t i) { return at<SlotEntry>(tables.rows_table())[i]; }
  SequenceRecord& record(uint32_t slot) { return at<SequenceRecord>(tables.records())[slot]; }

  std::vector<SlotEntry> rows() { return {&row(0), &row(0) + state().rows}; }
  std::vector<SlotEntry> all_sampled() { return {&sampled(0), &sampled(0) + sampled_state().rows}; }

 private:
  template <class T>
  T* at(uint64_t byte) {
    return reinterpret_cast<T*>(bytes.data() + byte);
  }
};

// The context of a plan for many sequences.
inline Context with_tables(const Context& ctx, const TablesImage& image, TensorView state) {
  Context many = ctx;
  many.state = state;
  many.tables = image.tables;
  return many;
}

}  // namespace doppler::kernels::testing
