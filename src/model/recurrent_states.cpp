#include "model/recurrent_states.h"

#include <algorithm>

#include "kernels/common/step_state.h"

namespace doppler::model {

StateShape state_shape(const formats::ModelConfig& config, uint32_t layer) {
  if (!formats::is_recurrent_layer(config, layer)) return {};
  const formats::RecurrentConfig& c = config.recurrent;
  return {.conv = (c.conv_kernel - 1ull) * c.conv_channels,
          .scan = uint64_t{c.n_value_heads} * c.key_dim * c.value_dim};
}

uint64_t state_bytes(const formats::ModelConfig& config) {
  uint64_t bytes = 0;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) bytes += state_shape(config, layer).bytes();
  return bytes;
}

uint32_t kept_rows(const formats::ModelConfig& config) { return config.next_layers != 0 ? 2 : 1; }

Task<Result<RecurrentStates::Copy>> RecurrentStates::make_copy(gpu::Device& device, const char* name,
                                                               uint32_t rows) {
  Copy copy;
  for (const uint64_t of_row : sizes_) {
    const uint64_t bytes = of_row * rows;
    gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
    DP_CO_TRY(gpu::Buffer made, co_await device.create_buffer(std::move(desc)));
    copy.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
    bytes_ += copy.back()->bytes();
  }
  co_return copy;
}

Task<Result<void>> RecurrentStates::make(gpu::Device& device, gpu::PlanBuilder& builder,
                                         const formats::ModelConfig& config, uint32_t slots,
                                         bool has_checkpoints) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const StateShape shape = state_shape(config, layer);
    if (shape.conv != 0) sizes_.push_back(shape.conv * slots * sizeof(float));
    if (shape.scan != 0) sizes_.push_back(shape.scan * slots * sizeof(float));
  }
  DP_CO_TRY(live_, co_await make_copy(device, "recurrent_state", kept_rows(config)));
  has_checkpoints_ = has_checkpoints && !live_.empty();
  for (Checkpoint& checkpoint : checkpoints_) {
    if (!has_checkpoints_) break;
    DP_CO_TRY(checkpoint.states, co_await make_copy(device, "state_checkpoint"));
  }
  size_t next = 0;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const StateShape shape = state_shape(config, layer);
    lowering::StateView view;
    if (shape.conv != 0) view.conv = builder.external(*live_[next++]);
    if (shape.scan != 0) view.scan = builder.external(*live_[next++]);
    views_.push_back(view);
  }
  co_return Result<void>();
}

RecurrentStates::Place RecurrentStates::states_at(uint32_t pos) const {
  if (pos == position()) return {.states = &live_, .row = kept_row_};
  const auto found = std::ranges::find(checkpoints_, pos, &Checkpoint::pos);
  return {.states = found == checkpoints_.end() || pos == 0 ? nullptr : &found->states};
}

uint32_t RecurrentStates::continues_from(uint32_t count) const {
  if (live_.empty()) return count;
  uint32_t best = position() <= count ? position() : 0;
  for (const Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.pos <= count) best = std::max(best, checkpoint.pos);
  }
  return best;
}

Result<void> RecurrentStates::copy(gpu::Device& device, Place from, const Copy& to) const {
  constexpr uint64_t kWord = sizeof(uint32_t);
  gpu::Plan plan{.name = "states.copy", .words = {}, .entries = {}};
  for (size_t i = 0; i < to.size(); ++i) {
    const auto size = static_cast<uint32_t>(sizes_[i] / kWord);
    const uint32_t words[gpu::kPlanCommandWords] = {
        gpu::kCopy, (*from.states)[i]->id(), from.row * size, to[i]->id(), 0, size};
    plan.words.insert(plan.words.end(), std::begin(words), std::end(words));
  }
  const gpu::Work work{.plan = &plan};
  return device.submit({&work, 1});
}

Result<void> RecurrentStates::begin(gpu::Device& device, uint32_t pos) {
  if (live_.empty()) return {};
  const Place place = states_at(pos);
  if (pos != 0 && !place.states) {
    return fail(ErrorKind::kInternal, "Position %u is to be continued, but the recurrent states stand at %u.",
                pos, position());
  }
  if (pos != 0 && place.states != &live_) {
    DP_CHECK(copy(device, place, live_));
    kept_row_ = 0;
  }
  for (Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.pos > pos) checkpoint.pos = 0;
  }
  prompt_end_ = pos;
  tokens_ = 0;
  return {};
}

Result<void> RecurrentStates::note_rows(gpu::Device& device, uint32_t rows) {
  prompt_end_ += rows;
  kept_row_ = 0;
  if (!has_checkpoints_) return {};
  Checkpoint& checkpoint = checkpoints_[next_checkpoint_];
  next_checkpoint_ = (next_checkpoint_ + 1) % kCheckpoints;
  checkpoint.pos = prompt_end_;
  return copy(device, {.states = &live_}, checkpoint.states);
}

void RecurrentStates::note_tokens(std::span<const uint32_t> tokens) {
  for (const uint32_t token : tokens) tokens_ += token == kernels::kNoToken ? 0 : 1;
}

uint64_t RecurrentStates::saved_bytes() const {
  uint64_t bytes = 0;
  for (const uint64_t size : sizes_) bytes += size;
  return bytes;
}

Task<Result<std::vector<uint8_t>>> RecurrentStates::save(gpu::Device& device, uint32_t pos) const {
  std::vector<uint8_t> out;
  const Place place = states_at(pos);
  if (live_.empty() || pos == 0) co_return out;
  if (!place.states) {
    co_return fail(ErrorKind::kInternal,
                   "The recurrent states of position %u are not there; they stand at %u.", pos, position());
  }
  for (size_t i = 0; i < sizes_.size(); ++i) {
    DP_CO_TRY(const std::vector<uint8_t> bytes,
              co_await device.read_buffer(
                  {.buffer = (*place.states)[i]->id(), .offset = place.row * sizes_[i], .bytes = sizes_[i]}));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  co_return out;
}

// The caller has checked how many bytes there are.
Task<Result<void>> RecurrentStates::restore(gpu::Device& device, uint32_t pos,
                                            std::span<const uint8_t> bytes) {
  uint64_t offset = 0;
  for (size_t i = 0; i < live_.size() && pos != 0; ++i) {
    DP_CO_CHECK(co_await device.upload(*live_[i], 0, bytes.subspan(offset, sizes_[i])));
    offset += sizes_[i];
  }
  for (Checkpoint& checkpoint : checkpoints_) checkpoint.pos = 0;
  prompt_end_ = pos;
  tokens_ = 0;
  kept_row_ = 0;
  co_return Result<void>();
}

}  // namespace doppler::model
