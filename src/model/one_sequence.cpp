#include "model/one_sequence.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/trace.h"
#include "kernels/attention/attention.h"
#include "kernels/sample/sample.h"
#include "model/device_model.h"
#include "model/read_logprobs.h"

namespace doppler::model {
namespace {

constexpr uint64_t kOneSequenceWord = sizeof(uint32_t);
// Tokens that plain steps chose go from the ring into the text that is searched. When so many are missing there, the
// host writes them. The ring then still has these and the tokens of steps in flight.
constexpr size_t kMostUnwritten = 1024;

}  // namespace

Task<Result<void>> OneSequence::make_readback() {
  DP_CO_TRY(readback_, co_await device_.create_readback_ring(parts_.tickets, kMaxBatch * kOneSequenceWord));
  co_return Result<void>();
}

uint32_t OneSequence::max_steps() const { return parts_.table ? 1 : kMaxBatch; }

uint32_t OneSequence::continues_from(uint32_t count) const {
  return parts_.cache->continues_from(parts_.states->continues_from(count));
}

bool OneSequence::drafts(const DraftNeed& need) const {
  const bool has_drafter = need.drafter != Drafter::kNone;
  return parts_.add_drafts && has_drafter && (!parts_.drafts_by_host || need.drafter == Drafter::kGiven);
}

DraftNeed OneSequence::need() const {
  DraftNeed need = draft_need_of(settings_);
  if (parts_.drafts_by_host) need.drafter = Drafter::kGiven;
  return need;
}

std::span<const uint32_t> OneSequence::draft_rows(const DraftNeed& need) const {
  return drafts(need) ? parts_.drafts->rows(need) : std::span<const uint32_t>();
}

bool OneSequence::may_prepare_drafts(const DraftNeed& need, uint32_t slots) const {
  return drafts(need) && parts_.drafts->may_add(need, slots);
}

Task<Result<void>> OneSequence::prepare_drafts(DraftNeed need, uint32_t slots) {
  return parts_.add_drafts(need, slots);
}

Result<void> OneSequence::check(const GenerationSettings& settings) const {
  DP_CHECK(parts_.adapters->check(settings.adapters));
  return check_settings(settings);
}

bool OneSequence::is_prepared(const GenerationSettings& settings) const {
  return parts_.choices->has(parts_of(settings)) && parts_.adapters->is_resident(settings.adapters);
}

Task<Result<void>> OneSequence::prepare(const GenerationSettings& settings) {
  auto loading = parts_.adapters->load(settings.adapters);
  DP_CO_CHECK(co_await std::move(loading));
  if (parts_.choices->has(parts_of(settings))) co_return Result<void>();
  auto adding = parts_.add_choices(parts_of(settings));
  co_return co_await std::move(adding);
}

Result<void> OneSequence::begin(uint32_t, const GenerationSettings& settings,
                                std::span<const uint32_t> before) {
  DP_CHECK(check(settings));
  if (!is_prepared(settings)) {
    return fail(ErrorKind::kInternal, "A generation begins before its plans were prepared.");
  }
  const auto pos = static_cast<uint32_t>(before.size());
  DP_CHECK(parts_.cache->begin(pos));
  DP_CHECK(parts_.states->begin(device_, pos));
  DP_CHECK(parts_.adapters->begin(0, settings.adapters, settings.adapters_from));
  const bool was_masked = settings_.masked;
  settings_ = settings;
  host_state_ = kernels::StepState{};
  host_state_.pos = pos;
  shift_ = parts_.images.shift_behind(before);
  DP_CHECK(parts_.images.write_shift(device_, 0, shift_));
  host_state_.ctx_len = parts_.ctx_len;
  host_state_.generated = settings.generated;
  host_state_.max_generated = settings.max_tokens;
  host_state_.seed_low = static_cast<uint32_t>(settings.seed);
  host_state_.seed_high = static_cast<uint32_t>(settings.seed >> 32);
  host_state_.ignore_stop = settings.ignore_stop ? 1 : 0;
  host_state_.stop_token_count = static_cast<uint32_t>(settings.stop_tokens.size());
  std::ranges::copy(settings.stop_tokens, host_state_.stop_tokens);
  recent_.clear();
  keep_recent(recent_, before.last(std::min<size_t>(before.size(), kRecentTokens)));
  text_.assign(before.begin(), before.end());
  text_begun_ = has_row_settings_ = false;
  ring_index_ = 0;
  if (takes_greedy_plan(settings)) return {};

  kernels::SampleParams params = settings.sampling;
  params.greedy = settings.greedy ? 1 : 0;
  params.bias_count = static_cast<uint32_t>(settings.logit_bias.size());
  DP_CHECK(device_.write(*parts_.params, 0, bytes_of(params)));
  if (!settings.logit_bias.empty()) DP_CHECK(device_.write(*parts_.bias, 0, bytes_of(settings.logit_bias)));
  constexpr uint32_t kNoMask = 0;
  if (was_masked && !settings.masked) return device_.write(*parts_.choices->mask(), 0, bytes_of(kNoMask));
  return {};
}

Result<void> OneSequence::mask(uint32_t, std::span<const uint32_t> allowed) {
  return device_.write(*parts_.choices->mask(), 0, bytes_of(mask_row(allowed, parts_.vocab_size)));
}

Result<void> OneSequence::write_state() {
  host_state_.kept_row = parts_.states->kept_row();
  return device_.write(*parts_.state, 0, bytes_of(host_state_));
}

// Writes the tokens that the penalties see before the first sampled one. The GPU keeps them from there (step.h).
Result<void> OneSequence::write_past() {
  const PastTokens past =
      past_tokens(settings_, recent_, host_state_.pos + host_state_.rows, parts_.vocab_size);
  if (choices().all_samplers) {
    DP_CHECK(device_.write(*parts_.choices->more(), 0, bytes_of(past.more)));
    DP_CHECK(device_.write(*parts_.choices->breakers(), 0, bytes_of(past.breakers)));
  }
  DP_CHECK(device_.write(*parts_.counts, 0, bytes_of(past.counts)));
  return device_.write(*parts_.recent, 0, bytes_of(past.recent));
}

Result<bool> OneSequence::write_prompt(const Piece& piece) {
  const std::vector<uint32_t> tokens(piece.tokens.begin(), piece.tokens.end());
  if (tokens.empty() || tokens.size() > parts_.chunk) {
    return fail(ErrorKind::kInternal, "A piece of a prompt has %zu tokens; allowed is 1 to %u.",
                tokens.size(), parts_.chunk);
  }
  if (piece.pos != host_state_.pos) {
    return fail(ErrorKind::kInternal, "A piece begins at position %u; the sequence stands at %u.", piece.pos,
                host_state_.pos);
  }
  if (piece.pos + tokens.size() > parts_.ctx_len) {
    return fail(ErrorKind::kInvalidInput,
                "The prompt ends at position %zu, but the context holds %u tokens (--ctx).",
                piece.pos + tokens.size(), parts_.ctx_len);
  }
  host_state_.rows = static_cast<uint32_t>(tokens.size());
  keep_recent(recent_, tokens);
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  const std::vector<uint32_t> embedded = parts_.images.embedded(tokens);
  if (parts_.table) DP_CHECK(parts_.table->write(embedded));
  DP_CHECK(device_.write(*parts_.tokens, 0, bytes_of(embedded)));
  if (parts_.has_next_layer && piece.next) {
    DP_CHECK(device_.write(*parts_.tokens, tokens.size() * kOneSequenceWord, bytes_of(*piece.next)));
  }
  DP_TRY(const bool has_images, parts_.images.write(device_, piece.pos, tokens, shift_));
  if (has_images) DP_CHECK(parts_.images.write_shift(device_, 0, shift_));
  DP_CHECK(write_state());
  return has_images;
}

Result<OpenStep> OneSequence::open_prompt(const Piece& piece) {
  DP_TRY(const bool has_images, write_prompt(piece));
  const bool greedy = takes_greedy_plan(settings_);
  if (piece.sample && !greedy) DP_CHECK(write_past());
  const std::string_view kind = !piece.sample ? "" : greedy ? ".greedy" : ".sample";
  const gpu::Plan& plan = has_images ? parts_.image_plan(kind) : parts_.prompt_plan(kind, host_state_.rows);
  return OpenStep{.plan = &parts_.choices->of(plan, choices()),
                  .rows = host_state_.rows,
                  .ticket = next_ticket(piece.sample ? 1 : 0, 1),
                  .is_prompt = true};
}

// Writes the part of the text that the host knows and the drafter lookup searches. The GPU adds the rest. A prediction
// stands before the text, with a word between that is no token.
Result<void> OneSequence::write_text() {
  const gpu::Buffer& to = parts_.drafts->text();
  const size_t room = parts_.drafts->text_places() - parts_.ctx_len - 1;
  const size_t predicted = std::min(settings_.prediction.size(), room);
  const auto base = static_cast<uint32_t>(predicted == 0 ? 0 : predicted + 1);
  if (!text_begun_) {
    const std::vector<uint32_t> header = {base, 0, 0, 0};
    DP_CHECK(device_.write(to, 0, bytes_of(header)));
    std::vector<uint32_t> before(settings_.prediction.begin(),
                                 settings_.prediction.begin() + static_cast<ptrdiff_t>(predicted));
    before.push_back(kernels::kNoToken);
    if (predicted != 0)
      DP_CHECK(device_.write(to, kernels::kTextTokens * kOneSequenceWord, bytes_of(before)));
    text_begun_ = true;
    text_written_ = 0;
  } else if (text_.size() - text_written_ < kMostUnwritten) {
    return {};
  }
  const std::vector<uint32_t> tokens(text_.begin() + static_cast<ptrdiff_t>(text_written_), text_.end());
  const uint64_t at = kernels::kTextTokens + base + text_written_;
  if (!tokens.empty()) DP_CHECK(device_.write(to, at * kOneSequenceWord, bytes_of(tokens)));
  text_written_ = text_.size();
  const auto written = static_cast<uint32_t>(text_written_);
  return device_.write(to, kernels::kTextWritten * kOneSequenceWord, bytes_of(written));
}

// Writes the last token, the host's drafts and the masks.
Result<void> OneSequence::write_given(const DecodeSteps& asked) {
  const SlotDrafts given = asked.given.empty() ? SlotDrafts() : asked.given[0];
  std::vector<uint32_t> rows = {last_token_};
  rows.insert(rows.end(), given.tokens.begin(), given.tokens.end());
  if (parts_.table) DP_CHECK(parts_.table->write(rows));
  DP_CHECK(parts_.drafts->write_given(device_, static_cast<uint32_t>(given.tokens.size())));
  DP_CHECK(parts_.drafts->write_rows(device_, rows));
  return parts_.drafts->write_masks(device_, 0, given.masks);
}

// The number of steps in a ticket, which is one contiguous copy out of the ring.
uint32_t OneSequence::draft_rounds(const DecodeSteps& asked) const {
  if (asked.rows == 1) return 0;
  const uint32_t until_wrap = kernels::kTokenRing - ring_index_ % kernels::kTokenRing;
  return std::min({asked.steps * asked.submits, kMaxBatch / asked.rows, until_wrap / asked.rows});
}

OpenStep OneSequence::open_draft(uint32_t rounds, uint32_t rows) {
  host_state_.pos += rows * rounds;  // at most: tokens() takes off what was left out
  const bool searches = need().drafter == Drafter::kLookup;
  return {.before = searches ? &parts_.drafts->text_plan() : nullptr,
          .plan = &parts_.drafts->plan(need(), rows),
          .rows = rows,
          .last_times = rounds,
          .ticket = next_ticket(rows * rounds, rows)};
}

Result<OpenStep> OneSequence::open_decode(const DecodeSteps& asked) {
  if (const uint32_t rounds = draft_rounds(asked); rounds != 0) {
    if (need().drafter == Drafter::kGiven) {
      DP_CHECK(write_given(asked));
    } else if (settings_.drafter == Drafter::kLookup) {
      DP_CHECK(write_text());
    }
    if (!takes_greedy_plan(settings_) && !has_row_settings_) {
      const PastTokens past = past_tokens(settings_, {}, 0, parts_.vocab_size);
      DP_CHECK(parts_.drafts->write_settings(device_, settings_, past, 0, parts_.drafts->most_rows()));
      has_row_settings_ = true;
    }
    return open_draft(rounds, asked.rows);
  }
  const uint32_t until_wrap = kernels::kTokenRing - ring_index_ % kernels::kTokenRing;
  const bool greedy = takes_greedy_plan(settings_);
  auto all = static_cast<uint32_t>(
      std::min({uint64_t{asked.steps} * asked.submits, uint64_t{max_steps()}, uint64_t{until_wrap}}));
  if (parts_.table) DP_CHECK(parts_.table->write({&last_token_, 1}));
  // The plan for short sequences as far as it goes.
  const uint32_t pos = host_state_.pos;
  if (pos < kernels::kShortKeys) all = std::min(all, kernels::kShortKeys - pos);
  host_state_.pos += all;
  const uint32_t before_last = (all - 1) / asked.steps;
  return OpenStep{.plan = &parts_.choices->of(parts_.decode_plan(greedy, pos + all), choices()),
                  .times = asked.steps,
                  .submits = 1 + before_last,
                  .last_times = all - before_last * asked.steps,
                  .ticket = next_ticket(all, 1)};
}

Ticket OneSequence::next_ticket(uint32_t entries, uint32_t rows) const {
  return {.slot = next_slot_,
          .count = entries,
          .has_logprobs = entries != 0 && settings_.sampling.logprobs != 0,
          .rows = rows};
}

// Without entries the ticket brings a word that means nothing, at the step's end.
Result<Ticket> OneSequence::close(const OpenStep& step) {
  const TraceSpan span(step.plan->name);
  for (uint32_t i = 1; i < step.submits; ++i) {
    const gpu::Work work{.plan = step.plan, .rows = step.rows, .times = step.times};
    DP_CHECK(device_.submit({&work, 1}));
  }
  const Ticket& ticket = step.ticket;
  const uint32_t entry = ring_index_ % kernels::kTokenRing;
  const gpu::Work works[] = {{.plan = step.before},
                             {.plan = step.plan, .rows = step.rows, .times = step.last_times}};
  const gpu::ReadbackRequest of_tokens{.ring = &readback_,
                                       .slot = ticket.slot,
                                       .from = {.buffer = parts_.ring->id(),
                                                .offset = entry * kOneSequenceWord,
                                                .bytes = std::max(1u, ticket.count) * kOneSequenceWord}};
  const gpu::ReadbackRequest request =
      parts_.stream ? parts_.stream->request(ticket.slot, step.rows) : of_tokens;
  DP_CHECK(device_.submit(std::span(works).subspan(step.before ? 0 : 1), &request));
  if (ticket.has_logprobs) {
    constexpr uint64_t kEntry = sizeof(kernels::LogProbEntry);
    const gpu::ReadbackRequest entries{.ring = &parts_.choices->logprob_readback(),
                                       .slot = ticket.slot,
                                       .from = {.buffer = parts_.choices->logprobs()->id(),
                                                .offset = entry * kEntry,
                                                .bytes = ticket.count * kEntry}};
    DP_CHECK(device_.submit({}, &entries));
  }
  if (parts_.watch && ticket.count != 0) DP_CHECK(parts_.watch->note(ticket.slot));
  next_slot_ = (next_slot_ + 1) % parts_.tickets;
  ring_index_ += ticket.count;
  if (!step.is_prompt) return ticket;
  host_state_.pos += step.rows;
  parts_.cache->note_end(host_state_.pos);
  DP_CHECK(parts_.states->note_rows(device_, step.rows));
  return ticket;
}

Result<OpenStep> OneSequence::open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                                   const DecodeSteps& steps) {
  if (pieces.empty()) return open_decode(steps);
  if (!decoding.empty() || pieces.size() != 1) {
    return fail(ErrorKind::kInternal, "A step of one sequence has %zu decoding slots and %zu pieces.",
                decoding.size(), pieces.size());
  }
  return open_prompt(pieces[0]);
}

Task<Result<std::vector<uint32_t>>> OneSequence::tokens(Ticket ticket) {
  const TraceSpan span("wait for tokens");
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read(readback_, ticket.slot, std::max(1u, ticket.count) * kOneSequenceWord));
  if (parts_.watch) DP_CO_CHECK(co_await parts_.watch->check(ticket.slot));
  std::vector<uint32_t> entries(ticket.count);
  std::memcpy(entries.data(), bytes.data(), entries.size() * kOneSequenceWord);
  note_entries(entries, ticket.rows);
  co_return entries;
}

// Recurrent states go on with the tokens. After a step that drafted, the last row that counted says which state holds.
void OneSequence::note_entries(std::span<const uint32_t> entries, uint32_t rows) {
  std::vector<uint32_t> tokens;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (kernels::is_left_out(entries[i])) {
      --host_state_.pos;
      continue;
    }
    tokens.push_back(entries[i]);
    if (entries[i] == kernels::kNoToken) continue;
    text_.push_back(entries[i]);
    if (rows > 1) parts_.states->note_kept_row(static_cast<uint32_t>(i % rows));
  }
  parts_.states->note_tokens(tokens);
  if (entries.empty()) return;
  // Wrong drafts and steps after a stop have written rows after the text's end.
  parts_.cache->note_end(static_cast<uint32_t>(text_.size()) + rows - 1);
  if (!tokens.empty()) last_token_ = tokens.back();
}

Result<void> OneSequence::note_chosen(uint32_t token) {
  note_entries({&token, 1}, 1);
  host_state_.rows = 1;
  DP_CHECK(write_state());
  return device_.write(*parts_.tokens, 0, bytes_of(token));
}

Task<Result<std::vector<kernels::LogProbEntry>>> OneSequence::logprobs(Ticket ticket) {
  co_return co_await read_logprobs(device_, parts_.choices->logprob_readback(), ticket.slot, ticket.count);
}

Task<Result<std::vector<uint8_t>>> OneSequence::save(uint32_t count) {
  DP_CO_TRY(std::vector<uint8_t> out, co_await parts_.cache->save(device_, count));
  DP_CO_TRY(const std::vector<uint8_t> states, co_await parts_.states->save(device_, count));
  out.insert(out.end(), states.begin(), states.end());
  co_return out;
}

Task<Result<void>> OneSequence::restore(uint32_t count, std::span<const uint8_t> bytes) {
  DP_CO_TRY(const uint64_t cache_bytes, parts_.cache->saved_bytes(bytes));
  const uint64_t wanted = cache_bytes + (count == 0 ? 0 : parts_.states->saved_bytes());
  if (count != KvCache::saved_positions(bytes) || bytes.size() != wanted) {
    co_return fail(ErrorKind::kInvalidInput,
                   "The saved cache has %zu bytes for %u tokens; this model asks for %llu.", bytes.size(),
                   count, static_cast<unsigned long long>(wanted));
  }
  DP_CO_CHECK(co_await parts_.cache->restore(device_, bytes.first(cache_bytes)));
  co_return co_await parts_.states->restore(device_, count, bytes.subspan(cache_bytes));
}

}  // namespace doppler::model
