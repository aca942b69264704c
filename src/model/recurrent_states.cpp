#include "model/recurrent_states.h"

#include <algorithm>

#include "kernels/common/step_state.h"

namespace doppler::model {

StateShape state_shape(const formats::ModelConfig& config, uint32_t layer) {
  if (!formats::is_recurrent_layer(config, layer) || !config.part.has(layer)) return {};
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

Task<Result<RecurrentStates::Rows>> RecurrentStates::make_rows(gpu::Device& device, const char* name,
                                                               uint32_t count) {
  Rows rows;
  for (const uint64_t of_row : sizes_) {
    if (count == 0) break;
    const uint64_t bytes = of_row * count;
    gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
    DP_CO_TRY(gpu::Buffer made, co_await device.create_buffer(std::move(desc)));
    rows.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
    bytes_ += rows.back()->bytes();
  }
  co_return rows;
}

Task<Result<void>> RecurrentStates::make(gpu::Device& device, gpu::PlanBuilder& builder,
                                         const formats::ModelConfig& config, uint32_t slots,
                                         uint32_t checkpoints) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const StateShape shape = state_shape(config, layer);
    if (shape.conv != 0) sizes_.push_back(shape.conv * sizeof(float));
    if (shape.scan != 0) sizes_.push_back(shape.scan * sizeof(float));
  }
  DP_CO_TRY(live_, co_await make_rows(device, "recurrent_state", slots * kept_rows(config)));
  DP_CO_TRY(kept_, co_await make_rows(device, "state_checkpoints", checkpoints));
  checkpoints_.assign(kept_.empty() ? 0 : checkpoints, 0);
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

Result<void> RecurrentStates::save_slot(gpu::Device& device, uint32_t slot, uint32_t checkpoint) {
  return copy(device, {.rows = &live_, .row = slot}, {.rows = &kept_, .row = checkpoint});
}

Result<void> RecurrentStates::load_slot(gpu::Device& device, uint32_t checkpoint, uint32_t slot) {
  return copy(device, {.rows = &kept_, .row = checkpoint}, {.rows = &live_, .row = slot});
}

RecurrentStates::Place RecurrentStates::states_at(uint32_t pos) const {
  if (pos == position()) return {.rows = &live_, .row = kept_row_};
  const auto found = std::ranges::find(checkpoints_, pos);
  if (found == checkpoints_.end() || pos == 0) return {};
  return {.rows = &kept_, .row = static_cast<uint32_t>(found - checkpoints_.begin())};
}

uint32_t RecurrentStates::continues_from(uint32_t count) const {
  if (live_.empty()) return count;
  uint32_t best = position() <= count ? position() : 0;
  for (const uint32_t pos : checkpoints_) {
    if (pos <= count) best = std::max(best, pos);
  }
  return best;
}

Result<void> RecurrentStates::copy(gpu::Device& device, Place from, Place to) const {
  constexpr uint64_t kWord = sizeof(uint32_t);
  gpu::Plan plan{.name = "states.copy", .words = {}, .entries = {}};
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const auto size = static_cast<uint32_t>(sizes_[i] / kWord);
    const uint32_t words[gpu::kPlanCommandWords] = {
        gpu::kCopy, (*from.rows)[i]->id(), from.row * size, (*to.rows)[i]->id(), to.row * size, size};
    plan.words.insert(plan.words.end(), std::begin(words), std::end(words));
  }
  const gpu::Work work{.plan = &plan};
  return device.submit({&work, 1});
}

Result<void> RecurrentStates::begin(gpu::Device& device, uint32_t pos) {
  if (live_.empty()) return {};
  const Place place = states_at(pos);
  if (pos != 0 && !place.rows) {
    return fail(ErrorKind::kInternal, "Position %u is to be continued, but the recurrent states stand at %u.",
                pos, position());
  }
  if (pos != 0 && place.rows != &live_) {
    DP_CHECK(copy(device, place, {.rows = &live_}));
    kept_row_ = 0;
  }
  for (uint32_t& at : checkpoints_) {
    if (at > pos) at = 0;
  }
  prompt_end_ = pos;
  tokens_ = 0;
  return {};
}

Result<void> RecurrentStates::note_rows(gpu::Device& device, uint32_t rows) {
  prompt_end_ += rows;
  kept_row_ = 0;
  if (checkpoints_.empty()) return {};
  const uint32_t checkpoint = next_checkpoint_;
  next_checkpoint_ = (next_checkpoint_ + 1) % kCheckpoints;
  checkpoints_[checkpoint] = prompt_end_;
  return copy(device, {.rows = &live_}, {.rows = &kept_, .row = checkpoint});
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
  if (!place.rows) {
    co_return fail(ErrorKind::kInternal,
                   "The recurrent states of position %u are not there; they stand at %u.", pos, position());
  }
  for (size_t i = 0; i < sizes_.size(); ++i) {
    DP_CO_TRY(const std::vector<uint8_t> bytes,
              co_await device.read_buffer(
                  {.buffer = (*place.rows)[i]->id(), .offset = place.row * sizes_[i], .bytes = sizes_[i]}));
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
  std::ranges::fill(checkpoints_, 0);
  prompt_end_ = pos;
  tokens_ = 0;
  kept_row_ = 0;
  co_return Result<void>();
}

}  // namespace doppler::model
