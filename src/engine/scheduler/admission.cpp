// Who begins and with which blocks: checks of a request, deadlines, the prefix that is there already.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/scheduler/scheduler.h"
#include "kernels/common/step_state.h"
#include "model/held_image.h"

namespace doppler::engine {

uint32_t most_tokens(const Request& request, uint32_t ctx_len) {
  const uint32_t room = ctx_len - static_cast<uint32_t>(request.tokens.size()) + 1;
  const uint32_t asked = request.settings.max_tokens;
  return asked == 0 ? room : std::min(asked, room);
}

Result<void> Scheduler::check(Request request, size_t waiting) const {
  if (broken_) return forward(*broken_);
  choose_adapters(request);
  return check_request(request, waiting_.size() + waiting);
}

Result<void> Scheduler::check_request(const Request& request, size_t waiting) const {
  if (request.tokens.empty())
    return fail(ErrorKind::kInvalidInput, "The prompt is empty; at least one token is needed.");
  const auto is_of_image = [&](uint32_t token) {
    return std::ranges::any_of(request.images, [&](const auto& image) { return image->has(token); });
  };
  for (const uint32_t token : request.tokens) {
    if (token >= config_.vocab_size && !is_of_image(token)) {
      return fail(ErrorKind::kInvalidInput, "Token %u is outside the vocabulary; allowed is 0 to %u.", token,
                  config_.vocab_size - 1);
    }
  }
  if (request.tokens.size() >= std::max(runner_.ctx_len(), 2u)) {  // a context of one token slides on
    return fail(
        ErrorKind::kInvalidInput,
        "The prompt has %zu tokens, but the context holds %u and needs room for an answer; raise --ctx.",
        request.tokens.size(), runner_.ctx_len());
  }
  if (request.priority < 0 || request.priority > kMaxPriority) {
    return fail(ErrorKind::kInvalidInput, "The priority is %d; allowed is 0 to %d.", request.priority,
                kMaxPriority);
  }
  const model::GenerationSettings& settings = request.settings;
  if (settings.stop_tokens.size() > kernels::kMaxStopTokens) {
    return fail(ErrorKind::kInvalidInput, "%zu stop tokens were given; at most %u are allowed.",
                settings.stop_tokens.size(), kernels::kMaxStopTokens);
  }
  if (settings.logit_bias.size() > kernels::kMaxLogitBias) {
    return fail(ErrorKind::kInvalidInput, "%zu logit biases were given; at most %u are allowed.",
                settings.logit_bias.size(), kernels::kMaxLogitBias);
  }
  DP_CHECK(runner_.check(settings));
  if (waiting >= config_.max_waiting) {
    return fail(ErrorKind::kOutOfMemory, "%zu requests wait already; at most %u may.", waiting,
                config_.max_waiting);
  }
  const auto prompt = static_cast<uint32_t>(request.tokens.size());
  const uint32_t limit = most_tokens(request, runner_.ctx_len());
  const uint32_t most = blocks_of(prompt + limit - 1, runner_.block_len());
  if (most > runner_.block_count()) {
    return fail(
        ErrorKind::kInvalidInput,
        "The prompt of %u tokens and an answer of at most %u need %u blocks, but the cache has %u; lower the "
        "token limit or give the cache more memory.",
        prompt, limit, most, runner_.block_count());
  }
  return {};
}

// Settles the adapters of a request, and the position at which they begin.
void Scheduler::choose_adapters(Request& request) const {
  model::GenerationSettings& settings = request.settings;
  if (request.first_adapters) settings.adapters = runner_.first_adapters();
  request.first_adapters = false;
  if (!settings.adapters) return;
  settings.adapters_from = 0;
  if (const std::vector<uint32_t>& wanted = settings.adapters->invocation_tokens(); !wanted.empty()) {
    const auto found = std::ranges::find_end(request.tokens, wanted);
    if (found.empty()) {
      settings.adapters = nullptr;
      return;
    }
    settings.adapters_from = static_cast<uint32_t>(found.begin() - request.tokens.begin());
  }
  request.adapter_key = settings.adapters->key();
}

// Everything besides its tokens that the keys and values of a request's text depend on.
std::vector<uint32_t> Scheduler::all_extras(const Request& request) {
  std::vector<uint32_t> out = request.extras;
  if (request.adapter_key.empty()) return out;
  out.insert(out.end(), request.adapter_key.begin(), request.adapter_key.end());
  out.push_back(request.settings.adapters_from);
  return out;
}

std::vector<uint32_t> Scheduler::extras_of_first(const std::vector<uint32_t>& tokens) const {
  Request request;
  request.tokens = tokens;
  choose_adapters(request);
  return all_extras(request);
}

Result<std::shared_ptr<Stream>> Scheduler::submit(Request request) {
  if (broken_) return forward(*broken_);
  choose_adapters(request);
  DP_CHECK(check_request(request, waiting_.size()));
  for (const auto& image : request.images) runner_.take_image(image);
  auto sequence = std::make_unique<Sequence>();
  sequence->prompt_len = static_cast<uint32_t>(request.tokens.size());
  sequence->limit = most_tokens(request, runner_.ctx_len());
  const uint32_t max_tokens = request.settings.max_tokens;
  sequence->limit_is_context = max_tokens == 0 || max_tokens > sequence->limit;
  if (request.guide) {
    DP_TRY(sequence->mask, request.guide->allowed());
  }
  sequence->serial = next_serial_++;
  sequence->submitted_at = request.submitted_at.value_or(config_.now());
  sequence->stream = std::make_shared<Stream>(sequence->serial, std::move(request.tokens));
  sequence->request = std::move(request);
  sequence->request.settings.max_tokens = sequence->request.settings.generated + sequence->limit;
  sequence->drafts = sequence->request.drafts;
  const uint32_t block_len = blocks_.pool().block_len();
  while ((sequence->keys.size() + 1) * block_len <= sequence->tokens().size()) {
    sequence->keys.push_back(next_key(*sequence));
  }
  waiting_.push(*sequence);
  std::shared_ptr<Stream> stream = sequence->stream;
  sequences_.emplace(sequence->serial, std::move(sequence));
  return stream;
}

Result<std::shared_ptr<Stream>> Scheduler::fork(const Stream& parent, Request request) {
  const std::vector<uint32_t>& text = parent.sequence();
  if (request.tokens.size() > text.size() ||
      !std::ranges::equal(request.tokens, std::span(text).first(request.tokens.size()))) {
    return fail(ErrorKind::kInternal, "A fork of %zu tokens does not begin as its parent of %zu.",
                request.tokens.size(), text.size());
  }
  DP_TRY(std::shared_ptr<Stream> stream, submit(std::move(request)));
  // The parent's states stand after its whole text.
  if (!runner_.has_states()) sequences_.at(stream->id())->forked_from = parent.id();
  return stream;
}

// Requests that can no longer begin in time.
void Scheduler::expire() {
  const Clock::time_point now = config_.now();
  for (Sequence* sequence : waiting_.expired(now)) {
    const auto seconds = [&](Clock::time_point until) {
      return std::chrono::duration<double>(until - sequence->submitted_at).count();
    };
    auto error =
        fail(ErrorKind::kCancelled, "The request waited %.3f s for its turn; its deadline allowed %.3f s.",
             seconds(now), seconds(*sequence->request.deadline));
    end(*sequence, std::move(error).error());
  }
}

// True if the waiting one takes the other's slot: by its priority, unless the other has waited for so long that it
// ranks as high.
bool Scheduler::outranks(const Sequence* waiting, const Sequence* running) const {
  const Clock::time_point now = config_.now();
  return waiting && running && waiting->request.priority > running->request.priority &&
         waiting_.level(*waiting, now) > waiting_.level(*running, now);
}

// Requests begin while a step with `budget` rows of prompts has room for them.
Result<void> Scheduler::admit(uint32_t budget) {
  std::vector<uint64_t> passed;  // clients whose request waits for a prefix or plans that are under way
  while (!waiting_.empty()) {
    if (free_slots_.empty() && !outranks(waiting_.highest(config_.now()), lowest())) return {};
    uint64_t rows = 0;
    uint32_t prompts = 0;
    std::vector<uint64_t> evaluating;  // clients that have a prompt under way
    for (const Sequence* sequence : running_) {
      if (sequence->phase != Phase::kPrefill) continue;
      rows += sequence->feed_to - sequence->fed;
      evaluating.push_back(sequence->request.client);
      ++prompts;
    }
    if (prompts == runner_.max_pieces()) return {};
    const auto among = [](const std::vector<uint64_t>& clients, uint64_t client) {
      return std::ranges::find(clients, client) != clients.end();
    };
    // When a step is full already, another client may begin still: split_rows() gives it its part.
    Sequence* next = waiting_.pick(config_.now(), [&](uint64_t client) {
      return !among(passed, client) && (rows < budget || !among(evaluating, client));
    });
    if (!next) return {};
    DP_TRY(const Beginning beginning, begin(*next));
    if (beginning == Beginning::kNoBlocks) return {};  // nobody overtakes it
    if (beginning == Beginning::kNoSlot) {
      Sequence* const last = lowest();
      if (!outranks(next, last) || !preempt(*last)) return {};
    }
    if (beginning == Beginning::kPrefixSoon || beginning == Beginning::kPlansSoon)
      passed.push_back(next->request.client);
  }
  return {};
}

// True if the runner has the plans. Otherwise it begins to make them, one request's after another.
bool Scheduler::has_plans(const Sequence& sequence) {
  const model::GenerationSettings& settings = sequence.request.settings;
  if (runner_.is_prepared(settings)) {
    const bool waits = sequence.drafts.use() == DraftUse::kAlways && runner_.max_sequences() == 1;
    return !waits || !prepare_drafts(need_of(sequence), 1);
  }
  if (preparing_.valid() || !runner_.can_prepare(settings)) return false;
  preparing_for_ = settings;
  prepares_drafts_ = false;
  preparing_ = runner_.prepare(preparing_for_);
  preparing_.start();
  return false;
}

// Plans that could not be made end the requests that need them.
void Scheduler::settle_plans(const Result<void>& made) {
  preparing_ = {};
  if (made) return;
  if (std::exchange(prepares_drafts_, false)) {
    log(LogLevel::kWarning, "No tokens are drafted: %s", made.error().message().c_str());
    return;
  }
  std::vector<Sequence*> lost;
  for (const auto& [serial, sequence] : sequences_) {
    const bool waits = sequence->phase == Phase::kWaiting && !runner_.is_prepared(sequence->request.settings);
    if (waits) lost.push_back(sequence.get());
  }
  for (Sequence* const sequence : lost) end(*sequence, made.error());
}

// Gives the sequence a slot and the blocks of its prompt.
Result<Scheduler::Beginning> Scheduler::begin(Sequence& sequence) {
  if (!has_plans(sequence)) return Beginning::kPlansSoon;
  BlockPool& pool = blocks_.pool();
  const auto feed_to = static_cast<uint32_t>(sequence.tokens().size());
  std::vector<uint32_t> blocks = pool.find_prefix(sequence.keys);
  const size_t known = blocks.size() + blocks_.in_host(std::span(sequence.keys).subspan(blocks.size()));
  const size_t found = usable_blocks(sequence, known);
  for (; blocks.size() > found; blocks.pop_back()) pool.release(blocks.back());
  const std::span<const PrefixKey> missing = std::span(sequence.keys).subspan(blocks.size());
  const size_t in_host = found - blocks.size();
  // One more where the prefix is the whole prompt, for the copy; and a block of growth for each that runs, so that
  // beginning does not lead to preempting.
  const size_t whole = found * pool.block_len() == feed_to ? 1 : 0;
  const size_t needed = blocks_of(feed_to, pool.block_len()) - blocks.size() + whole;
  const size_t spare = running_.size();
  const bool soon = comes_soon(sequence, found);
  const bool has_blocks = running_.empty() || needed + spare <= pool.free_count();
  if (soon || free_slots_.empty() || !has_blocks) {
    for (size_t i = blocks.size(); i-- > 0;) pool.release(blocks[i]);
    if (soon) return Beginning::kPrefixSoon;
    return free_slots_.empty() ? Beginning::kNoSlot : Beginning::kNoBlocks;
  }
  for (size_t i = 0; i < in_host; ++i) {
    DP_TRY(const uint32_t block, blocks_.restore(missing[i]));
    blocks.push_back(block);
  }
  sequence.published = static_cast<uint32_t>(blocks.size());
  // The prompt's last token is always evaluated: its row chooses the first token.
  uint32_t start = std::min(static_cast<uint32_t>(blocks.size()) * pool.block_len(), feed_to - 1);
  if (whole == 1) {
    DP_TRY(const uint32_t own, blocks_.make_writable(blocks.back()));
    blocks.back() = own;
    --sequence.published;
  }
  if (runner_.holds_text()) start = start_in_held(sequence);
  plan_cuts(sequence, start, known);
  DP_CHECK(windows_.begin(sequence.windows, sequence.keys, start));
  DP_CHECK(copy_forked(sequence, blocks, start));
  while (blocks.size() < blocks_of(feed_to, pool.block_len())) {
    DP_TRY(const uint32_t block, blocks_.take());
    blocks.push_back(block);
  }

  waiting_.charge(sequence);
  waiting_.remove(sequence);
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  sequence.blocks = std::move(blocks);
  running_.push_back(&sequence);
  if (!sequence.begun) {
    sequence.begun = true;
    StreamTimings& timings = sequence.stream->timings_;
    timings.cached_tokens = start;
    timings.queued_seconds = std::chrono::duration<double>(config_.now() - sequence.submitted_at).count();
  }
  if (runner_.has_states() && found > 0) DP_CHECK(states_.load(sequence.keys[found - 1], sequence.slot));
  DP_CHECK(begin_in_slot(sequence, start));
  return Beginning::kBegun;
}

// The most of its `known` first blocks after which it can begin: the other needs of its layers are there too.
size_t Scheduler::usable_blocks(const Sequence& sequence, size_t known) const {
  const auto tokens = static_cast<uint32_t>(sequence.tokens().size());
  for (size_t blocks = known;;) {
    const size_t with_states = states_.usable(sequence.keys, blocks, tokens);
    blocks = windows_.usable(sequence.keys, with_states, tokens);
    if (blocks == with_states) return blocks;
  }
}

// Where a sequence begins that finds what is held of the last one's text.
uint32_t Scheduler::start_in_held(const Sequence& sequence) const {
  if (held_extras_ != all_extras(sequence.request)) return runner_.continues_from(0);
  const std::span<const uint32_t> tokens = sequence.tokens();
  const auto [a, b] = std::ranges::mismatch(held_, tokens.first(tokens.size() - 1));
  return runner_.continues_from(static_cast<uint32_t>(a - held_.begin()));
}

// Begins after the first `start` tokens, which are in its blocks.
Result<void> Scheduler::begin_in_slot(Sequence& sequence, uint32_t start) {
  sequence.phase = Phase::kPrefill;
  sequence.fed = start;
  sequence.feed_to = static_cast<uint32_t>(sequence.tokens().size());
  sequence.asked = sequence.seen();
  sequence.piece_rows = config_.piece_rows == 0 ? ~0u : config_.piece_rows;
  sequence.piece_done_at = config_.now();
  model::GenerationSettings settings = sequence.request.settings;
  settings.generated += sequence.seen();
  DP_CHECK(runner_.begin(sequence.slot, settings, std::span(sequence.tokens()).first(start)));
  DP_CHECK(runner_.map(sequence.slot, 0, sequence.blocks));
  return windows_.map(sequence.slot, sequence.windows);
}

// True if another sequence is evaluating the block after the `found` ones: then it is better to wait for it.
bool Scheduler::comes_soon(const Sequence& sequence, size_t found) const {
  if (runner_.has_states()) return states_come_soon(sequence, found);
  if (found >= sequence.keys.size()) return false;
  return std::ranges::any_of(running_, [&](const Sequence* other) {
    return other->phase == Phase::kPrefill && other->published <= found && other->keys.size() > found &&
           other->keys[found] == sequence.keys[found];
  });
}

// Where only the last, partial block is missing and the sequence it was forked from has it, a copy of that.
Result<void> Scheduler::copy_forked(Sequence& sequence, std::vector<uint32_t>& blocks, uint32_t& start) {
  const uint32_t block_len = blocks_.pool().block_len();
  const uint32_t last =
      static_cast<uint32_t>(sequence.tokens().size()) - 1;  // position of the token to evaluate
  if (sequence.begun || runner_.holds_text())
    return {};  // preempted: it may have gone on otherwise than its parent
  const auto parent = sequences_.find(sequence.forked_from);
  if (parent == sequences_.end() || parent->second->blocks.empty()) return {};
  if (all_extras(parent->second->request) != all_extras(sequence.request)) return {};  // of other adapters
  if (blocks.size() != last / block_len || last % block_len == 0) return {};
  if (parent->second->known_positions() < last) return {};
  const bool has_windows = runner_.window() != 0;
  if (has_windows && !parent->second->windows.has(last / block_len)) return {};  // they have passed it
  DP_TRY(const uint32_t block, blocks_.take());
  blocks.push_back(block);
  DP_CHECK(runner_.copy_block(parent->second->blocks[last / block_len], block));
  DP_CHECK(windows_.copy(sequence.windows, parent->second->windows, last / block_len));
  start = last;
  return {};
}

}  // namespace doppler::engine
