#include "model/sequence_plans.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/trace.h"
#include "kernels/attention/attention.h"
#include "kernels/sample/sample.h"
#include "kernels/step/advance.h"
#include "model/read_logprobs.h"

namespace doppler::model {
namespace {

constexpr uint64_t kSequencePlansWord = sizeof(uint32_t);

bool looks_back(const kernels::SampleParams& params) {
  return params.repeat_penalty != 1.0f || params.presence_penalty != 0 || params.frequency_penalty != 0 ||
         kernels::uses_more(params);
}

}  // namespace

SequencePlans::SequencePlans(gpu::Device& device, SequenceBuffers buffers, kernels::StepTables tables,
                             uint32_t ctx_len, uint32_t block_count, uint32_t vocab_size, uint32_t tickets,
                             std::vector<uint32_t> classes, std::vector<uint32_t> piece_classes,
                             const std::vector<gpu::Plan>& plans, const ChoicePlans& choices,
                             std::function<Task<Result<void>>(SamplerParts)> add)
    : device_(device),
      buffers_(std::move(buffers)),
      tables_(tables),
      ctx_len_(ctx_len),
      block_count_(block_count),
      vocab_size_(vocab_size),
      tickets_(tickets),
      classes_(std::move(classes)),
      piece_classes_(std::move(piece_classes)),
      plans_(plans),
      choices_(choices),
      add_(std::move(add)),
      slots_(tables.sequences) {}

Task<Result<void>> SequencePlans::make_readback(uint32_t block_reads) {
  DP_CO_TRY(readback_, co_await device_.create_readback_ring(
                           tickets_, most_entries() * tables_.sequences * kSequencePlansWord));
  // A part of a model may have no layer with keys and values.
  const uint64_t bytes = std::max(block_bytes(), kSequencePlansWord);
  DP_CO_TRY(block_readback_, co_await device_.create_readback_ring(block_reads, bytes));
  reading_.assign(block_reads, false);
  co_return Result<void>();
}

// The most entries of a ticket for each slot: its steps, or one step's rows with drafts.
uint32_t SequencePlans::most_entries() const { return std::max(max_steps(), kernels::kMostDraftRows); }

uint32_t SequencePlans::max_steps() const { return buffers_.table ? 1 : kMostSteps; }

Result<void> SequencePlans::check_slot(uint32_t slot) const {
  if (slot < tables_.sequences) return {};
  return fail(ErrorKind::kInternal, "Slot %u was named; there are %u.", slot, tables_.sequences);
}

Task<Result<void>> SequencePlans::prepare(const GenerationSettings& settings) {
  auto loading = buffers_.adapters->load(settings.adapters);
  DP_CO_CHECK(co_await std::move(loading));
  if (choices_.has(parts_of(settings))) co_return Result<void>();
  auto adding = add_(parts_of(settings));
  co_return co_await std::move(adding);
}

Result<void> SequencePlans::check(const GenerationSettings& settings) const {
  DP_CHECK(buffers_.adapters->check(settings.adapters));
  return check_settings(settings);
}

Result<void> SequencePlans::begin(uint32_t slot, const GenerationSettings& settings,
                                  std::span<const uint32_t> before) {
  DP_CHECK(check_slot(slot));
  DP_CHECK(check(settings));
  if (!is_prepared(settings)) {
    return fail(ErrorKind::kInternal, "Slot %u begins before its plans were prepared.", slot);
  }
  DP_CHECK(buffers_.adapters->begin(slot, settings.adapters, settings.adapters_from));
  kernels::SequenceRecord record{.pos = static_cast<uint32_t>(before.size()),
                                 .ctx_len = ctx_len_,
                                 .generated = settings.generated,
                                 .max_generated = settings.max_tokens,
                                 .seed_low = static_cast<uint32_t>(settings.seed),
                                 .seed_high = static_cast<uint32_t>(settings.seed >> 32),
                                 .stop_token_count = static_cast<uint32_t>(settings.stop_tokens.size()),
                                 .ignore_stop = settings.ignore_stop ? 1u : 0u};
  std::ranges::copy(settings.stop_tokens, record.stop_tokens);
  DP_CHECK(device_.write(*buffers_.state, tables_.records() + slot * sizeof(record), bytes_of(record)));

  kernels::SampleParams params = settings.sampling;
  params.bias_count = static_cast<uint32_t>(settings.logit_bias.size());
  params.greedy = settings.greedy ? 1 : 0;
  DP_CHECK(device_.write(*buffers_.params, slot * kernels::kSampleParamsStride, bytes_of(params)));
  if (!settings.logit_bias.empty()) {
    DP_CHECK(device_.write(*buffers_.bias, uint64_t{slot} * kernels::kMaxLogitBias * 2 * kSequencePlansWord,
                           bytes_of(settings.logit_bias)));
  }
  if (slots_[slot].settings.masked && !settings.masked) {
    constexpr uint32_t kNoMask = 0;
    DP_CHECK(device_.write(*choices_.mask(),
                           uint64_t{slot} * kernels::mask_words(vocab_size_) * kSequencePlansWord,
                           bytes_of(kNoMask)));
  }
  slots_[slot] = {.settings = settings, .has_past = !settings.greedy && looks_back(params), .recent = {}};
  slots_[slot].end = static_cast<uint32_t>(before.size());
  slots_[slot].begun = ++begun_;
  slots_[slot].shift = buffers_.images.shift_behind(before);
  DP_CHECK(buffers_.images.write_shift(device_, slot, slots_[slot].shift));
  keep_recent(slots_[slot].recent, before.last(std::min<size_t>(before.size(), kRecentTokens)));
  return {};
}

// The part of the text before that the slot's next choice, a token that will stand at position `end`, depends on.
Result<void> SequencePlans::write_past(uint32_t slot, uint32_t end) {
  const PastTokens past = past_tokens(slots_[slot].settings, slots_[slot].recent, end, vocab_size_);
  if (choices_.more()) {
    DP_CHECK(device_.write(*choices_.more(), slot * sizeof(kernels::MoreState), bytes_of(past.more)));
    DP_CHECK(device_.write(*choices_.breakers(), uint64_t{slot} * past.breakers.size() * kSequencePlansWord,
                           bytes_of(past.breakers)));
  }
  const std::span counts = std::span(past.counts).first(vocab_size_);
  DP_CHECK(device_.write(*buffers_.counts, uint64_t{slot} * vocab_size_ * kSequencePlansWord,
                         {reinterpret_cast<const uint8_t*>(counts.data()), counts.size_bytes()}));
  return device_.write(*buffers_.recent, uint64_t{slot} * kernels::kPenaltyRing * kSequencePlansWord,
                       bytes_of(past.recent));
}

Result<void> SequencePlans::mask(uint32_t slot, std::span<const uint32_t> allowed) {
  DP_CHECK(check_slot(slot));
  const std::vector<uint32_t> row = mask_row(allowed, vocab_size_);
  return device_.write(*choices_.mask(), uint64_t{slot} * row.size() * kSequencePlansWord, bytes_of(row));
}

Result<void> SequencePlans::check_step(std::span<const uint32_t> decoding,
                                       std::span<const Piece> pieces) const {
  size_t rows = decoding.size();
  for (const uint32_t slot : decoding) DP_CHECK(check_slot(slot));
  for (const Piece& piece : pieces) {
    DP_CHECK(check_slot(piece.slot));
    if (piece.tokens.empty())
      return fail(ErrorKind::kInternal, "A piece of slot %u has no tokens.", piece.slot);
    if (piece.pos + piece.tokens.size() > ctx_len_) {
      return fail(ErrorKind::kInvalidInput,
                  "The prompt ends at position %zu, but the context holds %u tokens (--ctx).",
                  piece.pos + piece.tokens.size(), ctx_len_);
    }
    rows += piece.tokens.size();
  }
  if (rows == 0 || rows > tables_.rows || decoding.size() > tables_.sequences ||
      pieces.size() > kernels::kMaxPieces) {
    return fail(
        ErrorKind::kInternal,
        "A step of %zu rows, %zu decoding slots and %zu pieces was asked for; allowed are %u, %u and %u.",
        rows, decoding.size(), pieces.size(), tables_.rows, tables_.sequences, kernels::kMaxPieces);
  }
  return {};
}

Result<void> SequencePlans::write_request(std::span<const uint32_t> decoding, std::span<const Piece> pieces) {
  kernels::StepRequest request{.decoding = static_cast<uint32_t>(decoding.size()),
                               .pieces = static_cast<uint32_t>(pieces.size())};
  std::ranges::copy(decoding, request.slots);
  std::vector<uint32_t> tokens;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    request.piece[i] = {.slot = piece.slot,
                        .pos = piece.pos,
                        .rows = static_cast<uint32_t>(piece.tokens.size()),
                        .sample = piece.sample ? 1u : 0u};
    const std::vector<uint32_t> embedded = buffers_.images.embedded(piece.tokens);
    tokens.insert(tokens.end(), embedded.begin(), embedded.end());
    Slot& slot = slots_[piece.slot];
    slot.end = piece.pos + static_cast<uint32_t>(piece.tokens.size());
    keep_recent(slot.recent, piece.tokens);
    if (piece.sample && slot.has_past) {
      DP_CHECK(write_past(piece.slot, piece.pos + static_cast<uint32_t>(piece.tokens.size())));
    }
  }
  if (!tokens.empty())
    DP_CHECK(device_.write(*buffers_.tokens, decoding.size() * kSequencePlansWord, bytes_of(tokens)));
  if (buffers_.table) {
    // A slot that has stopped does not decode again, since its tokens were collected: rows are those of
    // kernels/step/arrange.h.
    std::vector<uint32_t> all;
    for (const uint32_t slot : decoding) all.push_back(slots_[slot].last);
    all.insert(all.end(), tokens.begin(), tokens.end());
    DP_CHECK(buffers_.table->write(all));
  }
  return device_.write(*buffers_.state, kernels::StepTables::request(), bytes_of(request));
}

bool SequencePlans::all_greedy(std::span<const uint32_t> decoding, std::span<const Piece> pieces) const {
  const auto is_greedy = [&](uint32_t slot) { return takes_greedy_plan(slots_[slot].settings); };
  return std::ranges::all_of(decoding, is_greedy) &&
         std::ranges::all_of(pieces, [&](const Piece& p) { return !p.sample || is_greedy(p.slot); });
}

// The parts that at least one row that chooses a token asks for.
SamplerParts SequencePlans::parts_of_step(std::span<const uint32_t> decoding,
                                          std::span<const Piece> pieces) const {
  SamplerParts parts;
  for (const uint32_t slot : decoding) parts = parts | parts_of(slots_[slot].settings);
  for (const Piece& piece : pieces) {
    if (piece.sample) parts = parts | parts_of(slots_[piece.slot].settings);
  }
  return parts;
}

Result<OpenStep> SequencePlans::open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                                     const DecodeSteps& steps) {
  DP_CHECK(check_step(decoding, pieces));
  if (!pieces.empty()) return open_pieces(decoding, pieces);
  return steps.rows > 1 ? open_drafts(decoding, steps) : open_decode(decoding, steps);
}

Result<OpenStep> SequencePlans::open_pieces(std::span<const uint32_t> decoding,
                                            std::span<const Piece> pieces) {
  DP_CHECK(write_request(decoding, pieces));
  DP_TRY(const bool has_images, write_images(decoding, pieces));
  const bool samples = !decoding.empty() || std::ranges::any_of(pieces, &Piece::sample);
  size_t rows = decoding.size();
  for (const Piece& piece : pieces) rows += piece.tokens.size();
  const auto count = static_cast<uint32_t>(rows);
  for (const uint32_t slot : decoding) slots_[slot].end += 1;
  return open_arranged(pieces_plan(all_greedy(decoding, pieces), samples, count, has_images), count,
                       samples ? 1 : 0, parts_of_step(decoding, pieces));
}

Result<OpenStep> SequencePlans::open_decode(std::span<const uint32_t> decoding, const DecodeSteps& asked) {
  DP_CHECK(write_request(decoding, {}));
  // A ticket is one contiguous copy out of the ring.
  const uint32_t until_wrap = kernels::kStepRing - ring_index_ % kernels::kStepRing;
  const auto rows = static_cast<uint32_t>(decoding.size());
  const uint32_t count = std::min({asked.steps * asked.submits, max_steps(), until_wrap});
  uint32_t keys = 0;
  for (const uint32_t slot : decoding) keys = std::max(keys, slots_[slot].end += count);
  return open_arranged(decode_plan(all_greedy(decoding, {}), rows, keys), rows, count,
                       parts_of_step(decoding, {}));
}

// steps 0: one step in which no row chooses a token. Its ticket brings one word that means nothing, at its end.
OpenStep SequencePlans::open_arranged(const gpu::Plan& base, uint32_t rows, uint32_t steps,
                                      SamplerParts parts) const {
  return {.before = &plan("many.arrange"),
          .plan = &choices_.of(base, parts),
          .rows = rows,
          .last_times = std::max(1u, steps),
          .ticket = {.slot = next_ticket_, .count = steps, .has_logprobs = parts.logprobs}};
}

Result<Ticket> SequencePlans::close(const OpenStep& step) {
  const TraceSpan span(step.plan->name);
  const Ticket& ticket = step.ticket;
  const gpu::Work works[] = {{.plan = step.before},
                             {.plan = step.plan, .rows = step.rows, .times = step.last_times}};
  const uint64_t step_bytes = tables_.sequences * kSequencePlansWord;
  const uint64_t first = ring_index_ % kernels::kStepRing;
  const gpu::ReadbackRequest of_tokens{
      .ring = &readback_,
      .slot = ticket.slot,
      .from = {.buffer = buffers_.ring->id(),
               .offset = first * step_bytes,
               .bytes = std::max(ticket.count * step_bytes, kSequencePlansWord)}};
  const gpu::ReadbackRequest request =
      buffers_.stream ? buffers_.stream->request(ticket.slot, step.rows) : of_tokens;
  DP_CHECK(device_.submit(std::span(works).subspan(step.before ? 0 : 1), &request));
  if (ticket.has_logprobs) {
    const uint64_t entries_bytes = tables_.sequences * sizeof(kernels::LogProbEntry);
    const gpu::ReadbackRequest entries{.ring = &choices_.logprob_readback(),
                                       .slot = ticket.slot,
                                       .from = {.buffer = choices_.logprobs()->id(),
                                                .offset = first * entries_bytes,
                                                .bytes = ticket.count * entries_bytes}};
    DP_CHECK(device_.submit({}, &entries));
  }
  next_ticket_ = (next_ticket_ + 1) % tickets_;
  ring_index_ += ticket.count;
  return ticket;
}

Task<Result<std::vector<uint32_t>>> SequencePlans::tokens(Ticket ticket) {
  const TraceSpan span("wait for tokens");
  const uint64_t count = uint64_t{ticket.count} * tables_.sequences;
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read(readback_, ticket.slot, std::max(count, uint64_t{1}) * kSequencePlansWord));
  std::vector<uint32_t> ids(count);
  std::memcpy(ids.data(), bytes.data(), count * kSequencePlansWord);
  for (size_t i = 0; i < ids.size(); ++i) {
    Slot& slot = slots_[i % tables_.sequences];
    if (kernels::is_left_out(ids[i])) {
      --slot.end;
    } else if (ids[i] != kernels::kNoToken) {
      slot.last = ids[i];
    }
  }
  co_return ids;
}

Task<Result<std::vector<kernels::LogProbEntry>>> SequencePlans::logprobs(Ticket ticket) {
  co_return co_await read_logprobs(device_, choices_.logprob_readback(), ticket.slot,
                                   ticket.count * tables_.sequences);
}

const gpu::Plan& SequencePlans::plan(const std::string& name) const {
  return *std::ranges::find(plans_, name, &gpu::Plan::name);  // names are those that DeviceModel records
}

const gpu::Plan& SequencePlans::decode_plan(bool greedy, uint32_t rows, uint32_t keys) const {
  const uint32_t largest = *std::ranges::find_if(classes_, [&](uint32_t most) { return rows <= most; });
  const std::string name = "many." + std::to_string(largest);
  const std::string& ending = greedy ? buffers_.endings.greedy : buffers_.endings.sample;
  const auto brief = std::ranges::find(plans_, name + ".short" + ending, &gpu::Plan::name);
  return keys > kernels::kShortKeysOfRows || brief == plans_.end() ? plan(name + ending) : *brief;
}

const gpu::Plan& SequencePlans::pieces_plan(bool greedy, bool samples, uint32_t rows, bool has_images) const {
  const uint32_t most = *std::ranges::find_if(piece_classes_, [&](uint32_t each) { return rows <= each; });
  const std::string name = has_images ? "many.images" : "many.pieces." + std::to_string(most);
  return plan(!samples ? name : name + (greedy ? buffers_.endings.greedy : buffers_.endings.sample));
}

}  // namespace doppler::model
