#include "engine/scheduler/test_sequence_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/scheduler/test_hash_model.h"
#include "kernels/common/step_state.h"

namespace doppler::engine::testing {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFu;

}  // namespace

TestSequenceRunner::TestSequenceRunner(RunnerShape shape)
    : shape_(shape),
      blocks_(shape.blocks, std::vector<Position>(shape.block_len)),
      slots_(shape.sequences),
      states_(shape.sequences),
      checkpoints_(shape.checkpoints),
      uses_(shape.blocks, std::vector<uint32_t>(shape.sequences, 0)) {
  if (shape.window == 0) return;
  const uint32_t least = model::least_window_blocks({.window = shape.window,
                                                     .block_len = shape.block_len,
                                                     .sequences = shape.sequences,
                                                     .rows = shape.rows,
                                                     .steps = shape.steps});
  window_blocks_.resize(least + shape.window_blocks, std::vector<Position>(shape.block_len));
}

Result<void> TestSequenceRunner::check(const model::GenerationSettings& settings) const {
  if (settings.sampling.min_tokens == 0) return {};
  return fail(ErrorKind::kUnsupported, "The scripted runner has no min_tokens.");
}

bool TestSequenceRunner::has_adapters(const model::GenerationSettings& settings) const {
  if (!settings.adapters || adapter_slots == 0) return true;
  return std::ranges::find(adapters_, settings.adapters->key()) != adapters_.end();
}

const std::vector<uint32_t>* TestSequenceRunner::free_adapter_slot() const {
  static const std::vector<uint32_t> kEmpty;
  if (adapters_.size() < adapter_slots) return &kEmpty;
  for (const std::vector<uint32_t>& key : adapters_) {
    if (std::ranges::find(slots_, key, &Slot::adapters) == slots_.end()) return &key;
  }
  return nullptr;
}

Task<Result<void>> TestSequenceRunner::prepare(const model::GenerationSettings& settings) {
  if (!has_adapters(settings)) {
    const std::vector<uint32_t>* free = free_adapter_slot();
    EXPECT_NE(free, nullptr) << "adapters are brought although all slots are held";
    if (free && !free->empty()) std::erase(adapters_, std::vector<uint32_t>(*free));
    adapters_.push_back(settings.adapters->key());
    ++adapter_loads;
    co_return Result<void>();
  }
  ++preparations;
  plans_made.emplace();
  const Completion<Result<void>> made = *plans_made;
  Result<void> result = co_await made;
  if (result) lacks_plans = false;
  co_return result;
}

Result<void> TestSequenceRunner::begin(uint32_t slot, const model::GenerationSettings& settings,
                                       std::span<const uint32_t> before) {
  EXPECT_EQ(slots_[slot].outstanding, 0u) << "slot " << slot << " begins before its tickets are collected";
  EXPECT_TRUE(is_prepared(settings)) << "slot " << slot << " begins without its plans";
  slots_[slot] = {
      .settings = settings,
      .table = std::vector<uint32_t>((shape_.ctx_len + shape_.block_len - 1) / shape_.block_len, kNone),
      .windows = std::vector<uint32_t>((shape_.ctx_len + shape_.block_len - 1) / shape_.block_len, kNone),
      .before = {before.begin(), before.end()},
      .adapters = settings.adapters ? settings.adapters->key() : std::vector<uint32_t>(),
      .pos = static_cast<uint32_t>(before.size()),
      .generated = settings.generated,
      .begun = true};
  ++begins;
  return {};
}

Result<void> TestSequenceRunner::map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  Slot& s = slots_[slot];
  EXPECT_TRUE(s.begun);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_LT(first + i, s.table.size()) << "slot " << slot;
    EXPECT_LT(blocks[i], shape_.blocks);
    EXPECT_EQ(s.table[first + i], kNone) << "slot " << slot << " has entry " << first + i << " mapped twice";
    EXPECT_EQ(std::ranges::find(s.table, blocks[i]), s.table.end())
        << "block twice in the table of slot " << slot;
    s.table[first + i] = blocks[i];
  }
  return {};
}

Result<void> TestSequenceRunner::copy_block(uint32_t from, uint32_t to) {
  EXPECT_NE(from, to);
  check_writable(to, kNone);
  blocks_[to] = blocks_[from];
  ++copies;
  return {};
}

Result<void> TestSequenceRunner::map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  Slot& s = slots_[slot];
  EXPECT_TRUE(s.begun);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_LT(first + i, s.windows.size()) << "slot " << slot;
    EXPECT_LT(blocks[i], window_blocks_.size());
    EXPECT_EQ(s.windows[first + i], kNone)
        << "slot " << slot << " has entry " << first + i << " mapped twice";
    s.windows[first + i] = blocks[i];
  }
  return {};
}

Result<void> TestSequenceRunner::copy_window_block(uint32_t from, uint32_t to) {
  EXPECT_NE(from, to);
  EXPECT_TRUE(!may_write_window || may_write_window(to))
      << "window block " << to << " is shared or published";
  window_blocks_[to] = window_blocks_[from];
  return {};
}

Result<void> TestSequenceRunner::save_states(uint32_t slot, uint32_t checkpoint) {
  EXPECT_LT(checkpoint, checkpoints_.size());
  checkpoints_[checkpoint] = states_[slot];
  return {};
}

Result<void> TestSequenceRunner::load_states(uint32_t checkpoint, uint32_t slot) {
  EXPECT_LT(checkpoint, checkpoints_.size());
  EXPECT_EQ(slots_[slot].outstanding, 0u)
      << "slot " << slot << " gets states before its tickets are collected";
  states_[slot] = checkpoints_[checkpoint];
  ++loads;
  return {};
}

Result<void> TestSequenceRunner::mask(uint32_t slot, std::span<const uint32_t> allowed) {
  EXPECT_TRUE(slots_[slot].begun && slots_[slot].settings.masked) << "slot " << slot << " takes no mask";
  slots_[slot].mask = {allowed.begin(), allowed.end()};
  return {};
}

TestSequenceRunner::Position& TestSequenceRunner::at(uint32_t slot, uint32_t pos) {
  static Position nowhere;
  const uint32_t block = pos < shape_.ctx_len ? slots_[slot].table[pos / shape_.block_len] : kNone;
  EXPECT_NE(block, kNone) << "position " << pos << " of slot " << slot << " is not mapped";
  return block == kNone ? nowhere : blocks_[block][pos % shape_.block_len];
}

// Calls are in order, so whoever wrote the block since shows in what stands there.
TestSequenceRunner::Position& TestSequenceRunner::window_at(uint32_t slot, uint32_t pos) {
  static Position nowhere;
  const uint32_t block = pos < shape_.ctx_len ? slots_[slot].windows[pos / shape_.block_len] : kNone;
  EXPECT_NE(block, kNone) << "position " << pos << " of slot " << slot << " is in no window block";
  return block == kNone ? nowhere : window_blocks_[block][pos % shape_.block_len];
}

void TestSequenceRunner::check_writable(uint32_t block, uint32_t slot) {
  EXPECT_TRUE(!may_write || may_write(block)) << "block " << block << " is shared or published and written";
  for (uint32_t other = 0; other < shape_.sequences; ++other) {
    if (other == slot) continue;
    EXPECT_EQ(uses_[block][other], 0u)
        << "block " << block << " is written while slot " << other << " uses it";
  }
}

// Writes a position after all earlier ones, whose prefixes must be of this very text.
uint64_t TestSequenceRunner::write(uint32_t slot, uint32_t pos, uint32_t token) {
  uint64_t prefix = kEmptyPrefix;
  for (uint32_t p = 0; p < pos; ++p) {
    const Position& position = at(slot, p);
    const std::vector<uint32_t>& before = slots_[slot].before;
    EXPECT_TRUE(p >= before.size() || position.token == before[p])
        << "slot " << slot << ": position " << p << " is not what it begins behind";
    prefix = after(prefix, position.token, adapter_word(slots_[slot].settings, p));
    EXPECT_EQ(position.prefix, prefix) << "slot " << slot << ": position " << p << " is of another text";
    if (p + shape_.window <= pos) continue;
    EXPECT_EQ(window_at(slot, p).prefix, prefix)
        << "slot " << slot << ": position " << p << " in the window of " << pos << " is of another text";
  }
  if (states) {
    State& state = states_[slot];
    if (pos == 0) state = {.pos = 0, .prefix = kEmptyPrefix};
    EXPECT_EQ(state.pos, pos) << "the states of slot " << slot << " stand elsewhere";
    EXPECT_EQ(state.prefix, prefix) << "the states of slot " << slot << " are of another text";
    state = {.pos = pos + 1, .prefix = after(prefix, token, adapter_word(slots_[slot].settings, pos))};
  }
  Position& position = at(slot, pos);
  check_writable(slots_[slot].table[pos / shape_.block_len], slot);
  position = {.token = token, .prefix = after(prefix, token, adapter_word(slots_[slot].settings, pos))};
  if (shape_.window != 0) {
    window_at(slot, pos) = position;
    const uint32_t block = slots_[slot].windows[pos / shape_.block_len];
    EXPECT_TRUE(!may_write_window || may_write_window(block))
        << "window block " << block << " is not its own";
  }
  return position.prefix;
}

uint32_t TestSequenceRunner::choose(uint32_t slot, uint64_t prefix) {
  Slot& s = slots_[slot];
  s.token = chosen_token(prefix, s.settings, s.generated, shape_.vocab);
  if (s.settings.masked) {
    const std::vector<uint32_t> mask = std::exchange(s.mask, {});  // each is of one choice
    EXPECT_FALSE(mask.empty()) << "slot " << slot << " chooses without its mask";
    const auto allows = [&](uint32_t token) {
      return token / 32 < mask.size() && (mask[token / 32] >> token % 32 & 1) != 0;
    };
    while (!mask.empty() && !allows(s.token)) s.token = (s.token + 1) % shape_.vocab;
  }
  s.chosen = true;
  ++s.generated;
  s.stopped = stops(s.settings, s.token) || s.generated >= s.settings.max_tokens || s.pos >= shape_.ctx_len;
  return s.token;
}

uint32_t TestSequenceRunner::decode_row(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.stopped) return kernels::kNoToken;
  const uint64_t prefix = write(slot, s.pos, s.token);
  ++s.pos;
  return choose(slot, prefix);
}

void TestSequenceRunner::check_decoding(std::span<const uint32_t> decoding) {
  std::vector<uint32_t> sorted(decoding.begin(), decoding.end());
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << "a slot twice in a step";
  for (const uint32_t slot : decoding)
    EXPECT_TRUE(slots_[slot].begun && slots_[slot].chosen) << "slot " << slot << " has no token to decode";
  for (uint32_t slot = 0; all_must_decode && slot < shape_.sequences; ++slot) {
    EXPECT_TRUE(!slots_[slot].chosen || slots_[slot].stopped || std::ranges::binary_search(sorted, slot))
        << "slot " << slot << " is left out";
  }
}

Result<model::Ticket> TestSequenceRunner::step(std::span<const uint32_t> decoding,
                                               std::span<const model::Piece> pieces) {
  check_decoding(decoding);
  Call call{.decoding = {decoding.begin(), decoding.end()}, .steps = 1};
  std::vector<uint32_t> slots(decoding.begin(), decoding.end());
  std::vector<uint32_t> result(shape_.sequences, kernels::kNoToken);
  for (const uint32_t slot : decoding) result[slot] = decode_row(slot);
  EXPECT_FALSE(pieces.empty() && decoding.empty());
  EXPECT_LE(pieces.size(), shape_.pieces);
  for (const model::Piece& piece : pieces) {
    Slot& s = slots_[piece.slot];
    EXPECT_EQ(std::ranges::find(slots, piece.slot), slots.end())
        << "slot " << piece.slot << " twice in a step";
    EXPECT_FALSE(piece.tokens.empty());
    EXPECT_FALSE(s.chosen) << "slot " << piece.slot << " has chosen a token before its prompt ends";
    EXPECT_EQ(piece.pos, s.pos) << "slot " << piece.slot << " skips or repeats positions";
    uint64_t prefix = 0;
    for (const uint32_t token : piece.tokens) prefix = write(piece.slot, s.pos++, token);
    if (piece.sample) result[piece.slot] = choose(piece.slot, prefix);
    slots.push_back(piece.slot);
    call.piece_slots.push_back(piece.slot);
    call.piece_rows += static_cast<uint32_t>(piece.tokens.size());
  }
  EXPECT_LE(call.piece_rows + decoding.size(), shape_.rows);
  calls.push_back(std::move(call));
  return issue(std::move(slots), std::move(result), 1);
}

Result<model::Ticket> TestSequenceRunner::decode(std::span<const uint32_t> decoding,
                                                 const model::DecodeSteps& asked) {
  uint32_t steps = asked.steps;
  EXPECT_EQ(asked.submits, 1u);
  check_decoding(decoding);
  if (asked.rows > 1) return decode_drafts(decoding, asked);
  EXPECT_FALSE(decoding.empty());
  EXPECT_GE(steps, 1u);
  EXPECT_LE(steps, shape_.steps);
  while (steps > 1 && gives_fewer_steps && gives_fewer_steps()) --steps;
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < steps; ++i) {
    result.resize(result.size() + shape_.sequences, kernels::kNoToken);
    for (const uint32_t slot : decoding) result[size_t{i} * shape_.sequences + slot] = decode_row(slot);
  }
  calls.push_back({.decoding = {decoding.begin(), decoding.end()}, .steps = steps});
  return issue({decoding.begin(), decoding.end()}, std::move(result), steps);
}

Result<model::Ticket> TestSequenceRunner::issue(std::vector<uint32_t> slots, std::vector<uint32_t> result,
                                                uint32_t count) {
  if (fail_after > 0 && --fail_after == 0) return fail(ErrorKind::kDevice, "The device is lost.");
  Outstanding out{.id = next_ticket_++, .slots = std::move(slots), .result = std::move(result)};
  for (const uint32_t slot : out.slots) {
    ++slots_[slot].outstanding;
    for (const uint32_t block : slots_[slot].table) {
      if (block == kNone) continue;
      ++uses_[block][slot];
      out.uses.emplace_back(block, slot);
    }
  }
  outstanding_.push_back(std::move(out));
  most_outstanding = std::max(most_outstanding, outstanding_.size());
  EXPECT_LE(outstanding_.size(), shape_.tickets);
  return model::Ticket{.slot = outstanding_.back().id, .count = count};
}

void TestSequenceRunner::let_go() {
  const Completion<bool> gate = *gate_;
  gate_.reset();
  gate.complete(true);
}

void TestSequenceRunner::arrive() {
  for (const Completion<bool>& reading : std::exchange(reading_, {})) reading.complete(true);
}

Task<Result<std::vector<uint32_t>>> TestSequenceRunner::tokens(model::Ticket ticket) {
  arrive();
  if (holds) {
    gate_.emplace();
    const Completion<bool> gate = *gate_;
    co_await gate;
  }
  EXPECT_FALSE(outstanding_.empty());
  Outstanding out = std::move(outstanding_.front());
  outstanding_.pop_front();
  EXPECT_EQ(out.id, ticket.slot) << "tickets are collected in order";
  for (const uint32_t slot : out.slots) --slots_[slot].outstanding;
  for (const auto& [block, slot] : out.uses) --uses_[block][slot];
  co_return std::move(out.result);
}

// Schedules are about tokens: nobody asks for these.
Task<Result<std::vector<kernels::LogProbEntry>>> TestSequenceRunner::logprobs(model::Ticket) {
  co_return fail(ErrorKind::kInternal, "The scripted runner gives no log-probabilities.");
}

// The bytes are those of the time of the call; they arrive with the next ticket.
Task<Result<std::vector<uint8_t>>> TestSequenceRunner::read_block(uint32_t block) {
  ++reads;
  std::vector<uint8_t> bytes(blocks_[block].size() * sizeof(Position));
  std::memcpy(bytes.data(), blocks_[block].data(), bytes.size());
  const Completion<bool> arrives;
  reading_.push_back(arrives);
  co_await arrives;
  co_return std::move(bytes);
}

Task<Result<void>> TestSequenceRunner::write_block(uint32_t block, std::span<const uint8_t> bytes) {
  ++writes;
  check_writable(block, kNone);
  EXPECT_EQ(bytes.size(), blocks_[block].size() * sizeof(Position));
  std::memcpy(blocks_[block].data(), bytes.data(), bytes.size());
  co_return Result<void>();
}

std::vector<uint32_t> TestSequenceRunner::alone(const RunnerShape& shape, std::vector<uint32_t> prompt,
                                                const model::GenerationSettings& settings) {
  std::vector<uint32_t> out;
  uint64_t prefix = kEmptyPrefix;
  size_t pos = 0;
  for (const uint32_t token : prompt) prefix = after(prefix, token, adapter_word(settings, pos++));
  const size_t room = shape.ctx_len - prompt.size() + 1;
  const size_t most = settings.max_tokens == 0 ? room : std::min<size_t>(room, settings.max_tokens);
  while (out.size() < most) {
    const auto generated = static_cast<uint32_t>(out.size());
    out.push_back(chosen_token(prefix, settings, generated, shape.vocab));
    if (stops(settings, out.back())) break;
    prefix = after(prefix, out.back(), adapter_word(settings, pos++));
  }
  return out;
}

}  // namespace doppler::engine::testing
