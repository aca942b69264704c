// PlanRunner's steps: what the host writes, what it submits, what it reads back.
// Loading and recording: plan_runner_load.cpp.
#include "model/plan_runner.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/log.h"
#include "base/trace.h"
#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/step/step.h"
#include "model/read_logprobs.h"

namespace doppler::model {

Result<void> check_writes_text(const formats::ModelConfig& config) {
  if (!formats::is_embedding_model(config)) return {};
  return fail(ErrorKind::kUnsupported,
              "The model %s gives %s of texts and writes none: use doppler embed or rerank.",
              config.name.c_str(), config.pooling.n_classes != 0 ? "scores" : "embeddings");
}

Result<void> PlanRunner::begin(const GenerationSettings& settings, std::span<const uint32_t> before) {
  DP_CHECK(check_writes_text(config_));
  if (!later_.empty()) {
    DP_CHECK(check_settings(settings));
    DP_CHECK(queue_later({.kind = Later::Kind::kBegin,
                          .settings = settings,
                          .tokens = {before.begin(), before.end()},
                          .has_ticket = false}));
    return {};
  }
  DP_CHECK(check_prepared(settings));
  DP_CHECK(begin_at(static_cast<uint32_t>(before.size())));
  return set_generation(settings, before);
}

Result<void> PlanRunner::check_prepared(const GenerationSettings& settings) const {
  if (settings.masked) {
    return fail(ErrorKind::kUnsupported, "A grammar needs a model that is loaded for two sequences or more.");
  }
  if (is_prepared(settings)) return {};
  return fail(ErrorKind::kInternal, "A generation begins before its plans were prepared.");
}

// What layers remember is that of a text up to `pos`.
Result<void> PlanRunner::begin_at(uint32_t pos) {
  DP_CHECK(cache_.begin(pos));
  return states_.begin(device_, pos);
}

Result<void> PlanRunner::set_generation(const GenerationSettings& settings,
                                        std::span<const uint32_t> before) {
  DP_CHECK(check_settings(settings));
  settings_ = settings;
  host_state_ = kernels::StepState{};
  host_state_.pos = static_cast<uint32_t>(before.size());
  host_state_.ctx_len = options_.ctx_len;
  host_state_.generated = settings.generated;
  host_state_.max_generated = settings.max_tokens;
  host_state_.seed_low = static_cast<uint32_t>(settings.seed);
  host_state_.seed_high = static_cast<uint32_t>(settings.seed >> 32);
  host_state_.ignore_stop = settings.ignore_stop ? 1 : 0;
  host_state_.stop_token_count = static_cast<uint32_t>(settings.stop_tokens.size());
  std::ranges::copy(settings.stop_tokens, host_state_.stop_tokens);
  const size_t kept = std::min<size_t>(before.size(), kRecentTokens);
  recent_tokens_.assign(before.end() - static_cast<ptrdiff_t>(kept), before.end());
  ring_index_ = 0;
  if (const std::string reason = model::refuse_drafts(settings); drafts_ && !reason.empty()) {
    log(LogLevel::kInfo, "Tokens of this answer are not drafted: %s.", reason.c_str());
  }
  if (takes_greedy_plan(settings)) return {};

  kernels::SampleParams params = settings.sampling;
  params.greedy = settings.greedy ? 1 : 0;
  params.bias_count = static_cast<uint32_t>(settings.logit_bias.size());
  DP_CHECK(device_.write(*params_, 0, bytes_of(params)));
  if (!settings.logit_bias.empty()) DP_CHECK(device_.write(*bias_, 0, bytes_of(settings.logit_bias)));
  return {};
}

Result<void> PlanRunner::write_state() {
  host_state_.kept_row = states_.kept_row();
  return device_.write(*state_, 0, bytes_of(host_state_));
}

// What the penalties see before the first sampled token: step.h says how the GPU keeps it from there.
Result<void> PlanRunner::write_penalties() {
  const PastTokens past =
      past_tokens(settings_, recent_tokens_, host_state_.pos + host_state_.rows, config_.vocab_size);
  if (parts_of(settings_).all_samplers) {
    DP_CHECK(device_.write(*choice_plans_.more(), 0, bytes_of(past.more)));
    DP_CHECK(device_.write(*choice_plans_.breakers(), 0, bytes_of(past.breakers)));
  }
  DP_CHECK(device_.write(*counts_, 0, bytes_of(past.counts)));
  return device_.write(*recent_, 0, bytes_of(past.recent));
}

Result<void> PlanRunner::prepare_prefill(std::span<const uint32_t> tokens) {
  if (tokens.empty() || tokens.size() > options_.chunk) {
    return fail(ErrorKind::kInternal, "A prefill chunk has %zu tokens; allowed is 1 to %u.", tokens.size(),
                options_.chunk);
  }
  if (host_state_.pos + tokens.size() > options_.ctx_len) {
    return fail(ErrorKind::kInvalidInput,
                "The prompt ends at position %zu, but the context holds %u tokens (--ctx).",
                host_state_.pos + tokens.size(), options_.ctx_len);
  }
  host_state_.rows = static_cast<uint32_t>(tokens.size());
  recent_tokens_.insert(recent_tokens_.end(), tokens.begin(), tokens.end());
  if (recent_tokens_.size() > kRecentTokens) {
    recent_tokens_.erase(recent_tokens_.begin(), recent_tokens_.end() - kRecentTokens);
  }
  DP_CHECK(write_tokens(tokens));
  return write_state();
}

Result<void> PlanRunner::write_tokens(std::span<const uint32_t> tokens) {
  const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
  if (host_table_) DP_CHECK(host_table_->write(ids));
  return device_.write(*tokens_, 0, bytes_of(ids));
}

Result<Ticket> PlanRunner::prefill(std::span<const uint32_t> tokens, std::optional<uint32_t> next) {
  const bool sample = !next;
  if (pager_) {
    return queue_later({.kind = Later::Kind::kPrefill,
                        .tokens = {tokens.begin(), tokens.end()},
                        .has_ticket = sample,
                        .ticket = {.count = sample ? 1u : 0u}});
  }
  DP_TRY(const gpu::Plan* const chosen, begin_prefill(tokens, sample));
  if (drafts_ && next) DP_CHECK(device_.write(*tokens_, tokens.size() * sizeof(uint32_t), bytes_of(*next)));
  DP_TRY(const Ticket ticket, submit(*chosen, host_state_.rows, 1, sample ? 1 : 0));
  DP_CHECK(end_prefill());
  return ticket;
}

// Writes what the plan reads, which comes back.
Result<const gpu::Plan*> PlanRunner::begin_prefill(std::span<const uint32_t> tokens, bool sample) {
  DP_CHECK(prepare_prefill(tokens));
  const bool greedy = takes_greedy_plan(settings_);
  if (sample && !greedy) DP_CHECK(write_penalties());
  const gpu::Plan& plan = plan_of_rows(!sample ? "" : greedy ? ".greedy" : ".sample", host_state_.rows);
  return &choice_plans_.of(plan, parts_of(settings_));
}

Result<void> PlanRunner::end_prefill() {
  host_state_.pos += host_state_.rows;
  note_end();
  return states_.note_rows(device_, host_state_.rows);
}

Result<Ticket> PlanRunner::mark() {
  if (pager_) return queue_later({.kind = Later::Kind::kMark});
  return submit_mark();
}

Result<Ticket> PlanRunner::submit_mark() {
  const Ticket ticket{.slot = next_slot_};
  const gpu::ReadbackRequest request{
      .ring = &readback_, .slot = ticket.slot, .from = {.buffer = ring_->id(), .offset = 0, .bytes = 4}};
  DP_CHECK(device_.submit({}, &request));
  next_slot_ = (next_slot_ + 1) % options_.tickets;
  return ticket;
}

Result<Ticket> PlanRunner::decode(uint32_t steps, uint32_t submits, bool drafts) {
  if (pager_) return queue_later({.kind = Later::Kind::kDecode, .ticket = {.count = 1}});
  // A ticket is one contiguous copy out of the ring.
  const uint32_t until_wrap = kernels::kTokenRing - ring_index_ % kernels::kTokenRing;
  auto all =
      static_cast<uint32_t>(std::min({uint64_t{steps} * submits, uint64_t{kMaxBatch}, uint64_t{until_wrap}}));
  if (host_table_) {
    DP_CHECK(host_table_->write({&last_token_, 1}));
    all = 1;
  }
  if (drafts && until_wrap > 1) {
    return decode_drafting(std::min({steps * submits, kMaxBatch / 2, until_wrap / 2}));
  }
  // The plan for short sequences as far as it goes.
  const uint32_t pos = host_state_.pos;
  if (pos < kernels::kShortKeys) all = std::min(all, kernels::kShortKeys - pos);
  host_state_.pos += all;
  note_end();
  const gpu::Plan& plan =
      choice_plans_.of(decode_plan(takes_greedy_plan(settings_), pos + all), parts_of(settings_));
  uint32_t left = all;
  for (; left > steps; left -= steps) DP_CHECK(submit(plan, 1, steps, 0));
  return submit(plan, 1, left, all);
}

Result<Ticket> PlanRunner::submit(const gpu::Plan& chosen, uint32_t rows, uint32_t times, uint32_t sampled) {
  const TraceSpan span(chosen.name);
  const gpu::Work work{.plan = &chosen, .rows = rows, .times = times};
  if (sampled == 0) {
    DP_CHECK(device_.submit({&work, 1}));
    return Ticket{};
  }
  const Ticket ticket{.slot = next_slot_,
                      .count = sampled,
                      .has_logprobs = settings_.sampling.logprobs != 0,
                      .drafts = chosen.name.starts_with("draft")};
  const uint32_t entry = ring_index_ % kernels::kTokenRing;
  const gpu::ReadbackRequest request{
      .ring = &readback_,
      .slot = ticket.slot,
      .from = {.buffer = ring_->id(), .offset = entry * 4ull, .bytes = sampled * 4ull}};
  DP_CHECK(device_.submit({&work, 1}, &request));
  if (ticket.has_logprobs) {
    const gpu::ReadbackRequest entries{.ring = &choice_plans_.logprob_readback(),
                                       .slot = ticket.slot,
                                       .from = {.buffer = choice_plans_.logprobs()->id(),
                                                .offset = entry * sizeof(kernels::LogProbEntry),
                                                .bytes = sampled * sizeof(kernels::LogProbEntry)}};
    DP_CHECK(device_.submit({}, &entries));
  }
  if (uses_persistent()) DP_CHECK(request_fault(ticket.slot));
  next_slot_ = (next_slot_ + 1) % options_.tickets;
  ring_index_ += sampled;
  return ticket;
}

Task<Result<std::vector<uint32_t>>> PlanRunner::tokens(Ticket ticket) {
  const TraceSpan span("wait for tokens");
  if (pager_) DP_CO_CHECK(co_await run_later(ticket.slot));
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read(readback_, ticket.slot, std::max(1u, ticket.count) * 4ull));
  if (exchange_) DP_CO_CHECK(co_await check_fault(ticket.slot));
  std::vector<uint32_t> ids(ticket.count);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  if (ticket.drafts) ids = accepted_of(ids);
  states_.note_tokens(ids);
  if (!ids.empty()) last_token_ = ids.back();
  co_return ids;
}

Task<Result<std::vector<kernels::LogProbEntry>>> PlanRunner::logprobs(Ticket ticket) {
  co_return co_await read_logprobs(device_, choice_plans_.logprob_readback(), ticket.slot, ticket.count);
}

namespace {

std::vector<float> floats_of(std::span<const uint8_t> bytes) {
  std::vector<float> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

}  // namespace

Task<Result<PlanRunner::Rows>> PlanRunner::logits(uint32_t pos, std::span<const uint32_t> tokens,
                                                  std::span<const uint32_t> types) {
  DP_CO_CHECK(begin_at(pos));
  DP_CO_CHECK(set_generation(GenerationSettings{}, {}));
  host_state_.pos = pos;
  if (tokens.empty() || tokens.size() > options_.chunk || pos + tokens.size() > options_.ctx_len ||
      (config_.bidirectional && pos != 0)) {
    co_return fail(ErrorKind::kInvalidInput,
                   "%zu tokens at position %u do not fit a chunk of %u or a context of %u.", tokens.size(),
                   pos, options_.chunk, options_.ctx_len);
  }
  host_state_.rows = static_cast<uint32_t>(tokens.size());
  DP_CO_CHECK(write_tokens(tokens));
  if (token_types_) {
    std::vector<uint32_t> all(types.begin(), types.end());
    all.resize(tokens.size());
    DP_CO_CHECK(device_.write(*token_types_, 0, bytes_of(all)));
  }
  DP_CO_CHECK(write_state());
  const gpu::Plan& chosen = plan_of_rows(".logits", host_state_.rows);
  const gpu::Plan* last = &chosen;
  if (pager_) {
    DP_CO_TRY(last, co_await last_part(chosen, host_state_.rows));
  }
  DP_CO_TRY([[maybe_unused]] const Ticket ticket, submit(*last, host_state_.rows, 1, 0));
  DP_CO_CHECK(end_prefill());

  Rows rows;
  const uint64_t count = tokens.size();
  const gpu::BufferSlice from{
      .buffer = logits_->id(), .offset = 0, .bytes = count * formats::output_dim(config_) * 4};
  DP_CO_TRY(const std::vector<uint8_t> logit_bytes, co_await device_.read_buffer(from));
  rows.logits = floats_of(logit_bytes);
  if (next_logits_ && count > 1) {
    const uint64_t bytes = (count - 1) * config_.vocab_size * sizeof(float);
    DP_CO_TRY(const std::vector<uint8_t> read,
              co_await device_.read_buffer({.buffer = next_logits_->id(), .offset = 0, .bytes = bytes}));
    rows.next_logits = floats_of(read);
  }
  for (uint32_t i = 0; hidden_ && i <= config_.n_layers; ++i) {
    const uint64_t layer_bytes = static_cast<uint64_t>(chosen.max_rows) * config_.hidden_dim * 4;
    const gpu::BufferSlice layer{
        .buffer = hidden_->id(), .offset = i * layer_bytes, .bytes = count * config_.hidden_dim * 4};
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await device_.read_buffer(layer));
    // The stream is kept divided by the residual scale (layers/builder.h).
    for (const float value : floats_of(bytes)) rows.hidden.push_back(value * config_.residual_scale);
  }
  co_return rows;
}

Task<Result<std::vector<uint8_t>>> PlanRunner::save_cache(uint32_t count) {
  if (pager_) DP_CO_CHECK(co_await run_later(std::nullopt));
  DP_CO_TRY(std::vector<uint8_t> out, co_await cache_.save(device_, count));
  DP_CO_TRY(const std::vector<uint8_t> states, co_await states_.save(device_, count));
  out.insert(out.end(), states.begin(), states.end());
  co_return out;
}

Task<Result<void>> PlanRunner::restore_cache(uint32_t count, std::span<const uint8_t> bytes) {
  if (pager_) DP_CO_CHECK(co_await run_later(std::nullopt));
  DP_CO_TRY(const uint64_t cache_bytes, cache_.saved_bytes(bytes));
  const uint64_t wanted = cache_bytes + (count == 0 ? 0 : states_.saved_bytes());
  if (count != KvCache::saved_positions(bytes) || bytes.size() != wanted) {
    co_return fail(ErrorKind::kInvalidInput,
                   "The saved cache has %zu bytes for %u tokens; this model asks for %llu.", bytes.size(),
                   count, static_cast<unsigned long long>(wanted));
  }
  DP_CO_CHECK(co_await cache_.restore(device_, bytes.first(cache_bytes)));
  co_return co_await states_.restore(device_, count, bytes.subspan(cache_bytes));
}

const gpu::Plan& PlanRunner::plan(std::string_view name) const {
  const auto it = std::ranges::find(built_.plans, name, &gpu::Plan::name);
  return it == built_.plans.end() ? built_.plans.front() : *it;  // names are those of record_plans()
}

// On a CPU, and in the exact lane, products of 17 to 64 rows are those of larger chunks.
bool PlanRunner::has_narrow_plans() const {
  return options_.policy.name != "exact" && device_.caps().type != gpu::AdapterType::kCpu;
}

// Of several rows of one sequence, the largest first.
std::vector<PlanRunner::RowClass> PlanRunner::row_classes() const {
  constexpr uint32_t kSkinny = kernels::kMaxSkinnyRows, kNarrow = kernels::kMaxNarrowRows;
  std::vector<RowClass> classes = {{"prefill", options_.chunk}};
  if (options_.chunk > kNarrow && has_narrow_plans()) classes.push_back({"narrow", kNarrow});
  if (options_.chunk > kSkinny) classes.push_back({"skinny", kSkinny});
  return classes;
}

const gpu::Plan& PlanRunner::plan_of_rows(std::string_view kind, uint32_t rows) const {
  std::string_view name;
  for (const RowClass& of : row_classes()) {
    if (rows <= of.rows) name = of.name;
  }
  return plan(std::string(name) + std::string(kind));
}

const gpu::Plan& PlanRunner::decode_plan(bool greedy, uint32_t keys) const {
  const bool has_short = options_.ctx_len > kernels::kShortKeys || uses_persistent();
  if (keys <= kernels::kShortKeys && has_short && !persistent_refused_) {
    return plan(greedy ? "decode.short.greedy" : "decode.short.sample");
  }
  if (uses_persistent()) return plan(greedy ? "decode.long.greedy" : "decode.long.sample");
  return plan(greedy ? "decode.greedy" : "decode.sample");
}
const gpu::Plan& PlanRunner::prefill_plan(uint32_t rows) const { return plan_of_rows(".greedy", rows); }

}  // namespace doppler::model
