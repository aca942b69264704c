#include "model/all_rows.h"

#include <cstring>

#include "base/bytes.h"
#include "base/trace.h"
#include "kernels/common/step_state.h"

namespace doppler::model {

Result<bool> AllRows::write(uint32_t pos, std::span<const uint32_t> tokens, std::span<const uint32_t> types) {
  if (tokens.empty() || tokens.size() > parts_.chunk || pos + tokens.size() > parts_.ctx_len ||
      (config_.bidirectional && pos != 0)) {
    return fail(ErrorKind::kInvalidInput,
                "%zu tokens at position %u do not fit a chunk of %u or a context of %u.", tokens.size(), pos,
                parts_.chunk, parts_.ctx_len);
  }
  DP_CHECK(parts_.cache->begin(pos));
  DP_CHECK(parts_.states->begin(device_, pos));
  const std::vector<uint32_t> ids = parts_.images.embedded(tokens);
  if (parts_.table) DP_CHECK(parts_.table->write(ids));
  DP_CHECK(device_.write(*parts_.tokens, 0, bytes_of(ids)));
  if (parts_.token_types) {
    std::vector<uint32_t> all(types.begin(), types.end());
    all.resize(tokens.size());
    DP_CHECK(device_.write(*parts_.token_types, 0, bytes_of(all)));
  }
  kernels::StepState state;
  state.pos = pos;
  state.rows = static_cast<uint32_t>(tokens.size());
  state.ctx_len = parts_.ctx_len;
  state.kept_row = parts_.states->kept_row();
  if (pos == 0) shift_ = 0;
  DP_TRY(const bool has_images, parts_.images.write(device_, pos, tokens, shift_));
  DP_CHECK(parts_.images.write_shift(device_, 0, shift_));
  DP_CHECK(device_.write(*parts_.state, 0, bytes_of(state)));
  return has_images;
}

Task<Result<std::vector<float>>> AllRows::read(const gpu::Buffer& buffer, uint64_t offset, uint64_t floats) {
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read_buffer({buffer.id(), offset, floats * sizeof(float)}));
  std::vector<float> out(floats);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  co_return out;
}

Task<Result<AllRows::Rows>> AllRows::run(uint32_t pos, std::span<const uint32_t> tokens,
                                         std::span<const uint32_t> types) {
  DP_CO_TRY(const bool has_images, write(pos, tokens, types));
  const auto count = static_cast<uint32_t>(tokens.size());
  const gpu::Plan& chosen = has_images ? parts_.image_plan() : parts_.plan(count);
  const TraceSpan span(chosen.name);
  const gpu::Plan* last = &chosen;
  if (parts_.last_part) {
    auto paging = parts_.last_part(chosen, count);
    DP_CO_TRY(last, co_await std::move(paging));
  }
  const gpu::Work work{.plan = last, .rows = count};
  DP_CO_CHECK(device_.submit({&work, 1}));
  parts_.cache->note_end(pos + count);
  DP_CO_CHECK(parts_.states->note_rows(device_, count));

  Rows rows;
  auto reading = read(*parts_.logits, 0, uint64_t{count} * parts_.result_dim);
  DP_CO_TRY(rows.logits, co_await std::move(reading));
  if (parts_.next_logits && count > 1) {
    auto next = read(*parts_.next_logits, 0, uint64_t{count - 1} * config_.vocab_size);
    DP_CO_TRY(rows.next_logits, co_await std::move(next));
  }
  for (uint32_t i = 0; parts_.hidden && i <= config_.n_layers; ++i) {
    const uint64_t layer_bytes = uint64_t{chosen.max_rows} * config_.hidden_dim * sizeof(float);
    auto layer = read(*parts_.hidden, i * layer_bytes, uint64_t{count} * config_.hidden_dim);
    DP_CO_TRY(const std::vector<float> values, co_await std::move(layer));
    // The stream is kept divided by the residual scale (layers/builder.h).
    for (const float value : values) rows.hidden.push_back(value * config_.residual_scale);
  }
  co_return rows;
}

}  // namespace doppler::model
