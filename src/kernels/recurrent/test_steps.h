// A text fed in steps to a kernel with a state: in plans of one sequence chunk by chunk, and in a plan of many as
// pieces beside decoding slots. Both must give what one pass over the text gives.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {

// The views that a kernel is recorded with: x [max_rows, x_columns] to y, with a state, and the test's own inputs.
struct StepViews {
  TensorView x, state, y;
  std::vector<TensorView> weights;
};
using RecordSteps = std::function<Result<void>(Context& ctx, const StepViews& views)>;

// One of several states in a buffer of two slots.
struct StatePart {
  uint64_t floats = 0;  // of a slot
  uint64_t begin = 0;   // of slot 0
};

struct StepShape {
  uint32_t x_columns = 0, y_columns = 0;
  uint64_t state_floats = 0;  // of a slot
  std::vector<std::vector<float>> weights;
  std::vector<StatePart> parts = {};  // empty: one state
};

inline StepViews make_views(KernelRun& run, const StepShape& shape, uint32_t max_rows, uint32_t slots) {
  // The state is poisoned: position 0 must not read it.
  StepViews views{.x = run.input(std::vector<float>(size_t{max_rows} * shape.x_columns)),
                  .state = run.output(slots * shape.state_floats * 4),
                  .y = run.output(uint64_t{max_rows} * shape.y_columns * 4),
                  .weights = {}};
  for (const std::vector<float>& weight : shape.weights) views.weights.push_back(run.input(weight));
  return views;
}

inline std::vector<float> rows_of(const std::vector<float>& x, uint32_t columns, uint32_t first,
                                  uint32_t rows, uint32_t max_rows) {
  std::vector<float> out(size_t{max_rows} * columns);
  std::copy_n(x.begin() + size_t{first} * columns, size_t{rows} * columns, out.begin());
  return out;
}

// For a model that drafts: moves slot 0's state to slot 1, as if the step before had been one of two rows. Slot 0 is
// poisoned.
inline void move_to_slot_1(KernelRun& run, const StepShape& shape, TensorView state) {
  std::vector<uint32_t> words = run.read<uint32_t>(state, 2 * shape.state_floats);
  for (const StatePart& part :
       shape.parts.empty() ? std::vector{StatePart{shape.state_floats}} : shape.parts) {
    std::copy_n(&words[part.begin], part.floats, &words[part.begin + part.floats]);
    std::fill_n(&words[part.begin], part.floats, kPoison);
  }
  run.overwrite(state, words);
}

// y of all rows of x, in steps of one sequence of so many rows each. drafts: in plans of a model that drafts, where
// every other step begins with slot 1.
inline std::vector<float> run_chunks(const Policy& policy, const StepShape& shape,
                                     const std::vector<float>& x, const std::vector<uint32_t>& chunks,
                                     uint32_t max_rows, const RecordSteps& record_steps,
                                     bool drafts = false) {
  KernelRun run(policy, max_rows);
  const StepViews views = make_views(run, shape, max_rows, drafts ? 2 : 1);
  const auto body = [&](Context& ctx) {
    ctx.drafts = drafts;
    return record_steps(ctx, views);
  };
  if (!run.record(body)) return {};
  uint32_t kept_row = 0;
  std::vector<float> y;
  uint32_t pos = 0;
  for (const uint32_t rows : chunks) {
    run.overwrite(views.x, rows_of(x, shape.x_columns, pos, rows, max_rows));
    run.state = {.pos = pos, .kept_row = kept_row};
    run.replay(rows);
    kept_row = 0;
    const std::vector<float> made = run.read<float>(views.y, uint64_t{rows} * shape.y_columns);
    y.insert(y.end(), made.begin(), made.end());
    pos += rows;
    // A step after the end of a generation changes nothing.
    run.state = {.pos = pos, .stop_reason = kStopToken};
    run.replay(1);
    if (drafts && pos % 2 == 1) {
      move_to_slot_1(run, shape, views.state);
      kept_row = 1;
    }
  }
  return y;
}

// The same text in slot 2 of three. Without a piece: in decode steps beside the same in slot 0. Otherwise: a piece,
// then a decode step beside a piece of slot 0 with the text's beginning, then decode steps beside slot 0. Gives slot
// 2's rows, and checks that slot 0's are those of the text's beginning.
inline std::vector<float> run_slots(const Policy& policy, const StepShape& shape, const std::vector<float>& x,
                                    uint32_t piece, uint32_t rows, const RecordSteps& record_steps) {
  TablesImage image({.sequences = 3, .rows = 16, .blocks = 2, .block_len = 16});
  KernelRun run(policy, 16);
  const TensorView tables = run.inout(image.bytes);
  const StepViews views = make_views(run, shape, 16, 3);
  const auto body = [&](Context& ctx) {
    Context many = with_tables(ctx, image, tables);
    return record_steps(many, views);
  };
  if (!run.record(body)) return {};
  std::vector<float> y, other;
  const auto step = [&](uint32_t decoding, std::vector<PieceRequest> pieces, std::vector<SlotEntry> entries) {
    image.state().rows = static_cast<uint32_t>(entries.size());
    image.state().single_rows = decoding;
    image.request().pieces = static_cast<uint32_t>(pieces.size());
    std::ranges::copy(pieces, image.request().piece);
    std::vector<float> values(size_t{16} * shape.x_columns);
    for (uint32_t i = 0; i < entries.size(); ++i) {
      image.row(i) = entries[i];
      if (entries[i].value == kNowhere) continue;
      std::copy_n(x.begin() + size_t{entries[i].value} * shape.x_columns, shape.x_columns,
                  values.begin() + size_t{i} * shape.x_columns);
    }
    run.overwrite(tables, image.bytes);
    run.overwrite(views.x, values);
    run.replay(image.state().rows);
    const std::vector<float> made = run.read<float>(views.y, entries.size() * shape.y_columns);
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (entries[i].value == kNowhere) continue;
      std::vector<float>& to = entries[i].slot == 2 ? y : other;
      to.insert(to.end(), made.begin() + size_t{i} * shape.y_columns,
                made.begin() + size_t{i + 1} * shape.y_columns);
    }
  };
  const auto checked = [&] {
    for (size_t i = 0; i < other.size(); ++i) EXPECT_NEAR(other[i], y[i], 1e-4f * (1 + std::abs(y[i]))) << i;
    return y;
  };
  if (piece == 0) {
    for (uint32_t i = 0; i < rows; ++i) step(3, {}, {{2, i}, {1, kNowhere}, {0, i}});
    return checked();
  }
  std::vector<SlotEntry> first;
  for (uint32_t i = 0; i < piece; ++i) first.push_back({2, i});
  step(0, {{.slot = 2, .pos = 0, .rows = piece}}, first);
  // Slot 1 has stopped; slot 0 begins.
  step(2, {{.slot = 0, .pos = 0, .rows = 2}}, {{1, kNowhere}, {2, piece}, {0, 0}, {0, 1}});
  for (uint32_t i = piece + 1; i < rows; ++i) step(2, {}, {{2, i}, {0, i - piece + 1}});
  return checked();
}

}  // namespace doppler::kernels::testing
