#include "engine/dispatch/dispatcher_native.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace doppler::engine {
namespace {

std::vector<CardState> states_of(std::span<SchedulerDriver* const> cards) {
  std::vector<CardState> out;
  for (const SchedulerDriver* card : cards) out.push_back({.places = card->places()});
  return out;
}

std::vector<uint64_t> cache_tokens_of(std::span<SchedulerDriver* const> cards) {
  std::vector<uint64_t> out;
  for (const SchedulerDriver* card : cards) out.push_back(card->cache_tokens());
  return out;
}

// Keys and values depend on these words besides the tokens.
std::vector<uint32_t> extras_of(const Request& request) {
  if (request.first_adapters || !request.settings.adapters) return {};
  return request.settings.adapters->key();
}

bool shares_prefix(const Request& request) { return request.extras.empty(); }

// As the scheduler of one card says it.
Error waited_too_long(const Sequence& sequence, Clock::time_point now) {
  const auto seconds = [&](Clock::time_point until) {
    return std::chrono::duration<double>(until - sequence.submitted_at).count();
  };
  return Error(ErrorKind::kCancelled,
               format_text("The request waited %.3f s for its turn; its deadline allowed %.3f s.",
                           seconds(now), seconds(*sequence.request.deadline)));
}

}  // namespace

Dispatcher::Dispatcher(std::vector<SchedulerDriver*> cards)
    : cards_(std::move(cards)),
      states_(states_of(cards_)),
      prefixes_(cache_tokens_of(cards_)),
      queue_(SchedulerConfig{}.aging, SchedulerConfig{}.quantum) {
  if (has_one()) return;
  for (SchedulerDriver* card : cards_) {
    card->start_thread({.on_end = [this](const std::shared_ptr<StreamLine>& line) { note_end(line); },
                        .on_turn =
                            [this] {
                              if (waiting_ != 0) pump();
                            }});
  }
}

void Dispatcher::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

// The first card that takes requests, or if none does the first one, whose scheduler says why.
size_t Dispatcher::first_there() {
  for (size_t i = 0; i < cards_.size(); ++i) {
    if (!cards_[i]->is_lost()) return i;
  }
  return 0;
}

Result<std::shared_ptr<StreamLine>> Dispatcher::submit(Request request, std::shared_ptr<StreamLine> parent) {
  if (has_one()) return cards_[0]->submit(std::move(request), std::move(parent));
  for (Result<void> checked = {};;) {
    SchedulerDriver& card = *cards_[first_there()];
    checked = card.check(request, waiting_);
    if (checked) break;
    if (&card == cards_[first_there()]) return forward(std::move(checked).error());
  }
  auto line = std::make_shared<StreamLine>(nullptr);
  enter(line, std::move(request), std::move(parent));
  return line;
}

std::shared_ptr<StreamLine> Dispatcher::submit_later(Request request, std::shared_ptr<StreamLine> parent,
                                                     std::function<void()> on_news) {
  if (has_one()) return cards_[0]->submit_later(std::move(request), std::move(parent), std::move(on_news));
  auto line = std::make_shared<StreamLine>(std::move(on_news));
  enter_later(line, std::move(request), std::move(parent));
  return line;
}

void Dispatcher::enter_later(const std::shared_ptr<StreamLine>& line, Request request,
                             std::shared_ptr<StreamLine> parent) {
  SchedulerDriver& card = *cards_[first_there()];
  card.post([this, &card, line, request = std::move(request), parent = std::move(parent)]() mutable {
    auto checked = card.check_now(request, waiting_);
    if (checked) return enter(line, std::move(request), std::move(parent));
    if (&card != cards_[first_there()]) return enter_later(line, std::move(request), std::move(parent));
    line->fail(std::move(checked).error());
  });
}

void Dispatcher::enter(const std::shared_ptr<StreamLine>& line, Request request,
                       std::shared_ptr<StreamLine> parent) {
  line->accept();
  {
    const std::lock_guard lock(mutex_);
    if (line->is_over()) return;  // cancelled on its way
    const uint64_t number = line->number = next_number_++;
    Entry& entry = entries_[number];
    Sequence& sequence = entry.sequence;
    sequence.serial = number;
    sequence.submitted_at = Clock::now();
    sequence.prompt_len = static_cast<uint32_t>(request.tokens.size());
    sequence.limit = cards_[0]->most_tokens(request);
    if (shares_prefix(request)) entry.keys = prefixes_.keys_of(extras_of(request), request.tokens);
    request.submitted_at = sequence.submitted_at;
    sequence.request = std::move(request);
    entry.line = line;
    entry.parent = std::move(parent);
    queue_.push(sequence);
    waiting_ = queue_.size();
  }
  pump();
}

std::vector<uint32_t> Dispatcher::known_tokens(const Entry& entry) {
  std::vector<uint32_t> known;
  for (size_t i = 0; i < cards_.size(); ++i) known.push_back(prefixes_.known_tokens(i, entry.keys));
  // A parent's text is on its card.
  if (entry.parent && entry.parent->card < cards_.size())
    known[entry.parent->card] = entry.sequence.prompt_len;
  return known;
}

void Dispatcher::pump() {
  std::vector<std::pair<std::shared_ptr<StreamLine>, Error>> late;
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    for (size_t i = 0; i < cards_.size(); ++i) states_[i].is_lost = cards_[i]->is_lost();
    const bool all_lost = std::ranges::all_of(states_, &CardState::is_lost);
    for (Sequence* sequence : queue_.expired(now)) {
      queue_.remove(*sequence);
      const auto found = entries_.find(sequence->serial);
      late.emplace_back(found->second.line, waited_too_long(*sequence, now));
      entries_.erase(found);
    }
    while (Sequence* next = queue_.pick(now, [](uint64_t) { return true; })) {
      Entry& entry = entries_.at(next->serial);
      std::optional<size_t> card =
          choose_card(states_, next->request.priority, next->prompt_len, known_tokens(entry));
      if (!card && all_lost) card = 0;  // its scheduler says what happened
      if (!card) break;
      give(entry, *card);
    }
    waiting_ = queue_.size();
  }
  for (auto& [line, error] : late) line->fail(std::move(error));
}

void Dispatcher::give(Entry& entry, size_t card) {
  Sequence& sequence = entry.sequence;
  queue_.charge(sequence);
  queue_.remove(sequence);
  ++states_[card].streams[static_cast<size_t>(sequence.request.priority)];
  prefixes_.note(card, entry.keys);
  std::shared_ptr<StreamLine> parent = std::exchange(entry.parent, nullptr);
  if (parent && parent->card != card) parent = nullptr;  // its prompt is evaluated again
  entry.card = entry.line->card = card;
  Request request = sequence.request;  // the queue goes on to look at the client and the priority of this one
  sequence.request.tokens.clear();
  cards_[card]->begin_later(entry.line, std::move(request), std::move(parent));
}

// By a card's thread.
void Dispatcher::note_end(const std::shared_ptr<StreamLine>& line) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(line->number);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    --states_[entry.card].streams[static_cast<size_t>(entry.sequence.request.priority)];
    if (const auto& stream = line->stream()) {
      entry.sequence.stream = stream;
      queue_.refund(entry.sequence);
      if (shares_prefix(entry.sequence.request))
        prefixes_.note(entry.card, prefixes_.keys_of(extras_of(entry.sequence.request), stream->sequence()));
    }
    entries_.erase(found);
  }
  pump();
}

Arrived Dispatcher::wait(const std::shared_ptr<StreamLine>& line, const std::atomic<bool>* cancelled) {
  return has_one() ? cards_[0]->wait(line, cancelled) : line->wait();
}

void Dispatcher::cancel(const std::shared_ptr<StreamLine>& line) {
  if (has_one()) return cards_[0]->cancel(*line);
  cancel_later(line);
}

void Dispatcher::cancel_later(const std::shared_ptr<StreamLine>& line) {
  if (has_one()) return cards_[0]->cancel_later(line);
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(line->number);
    if (found != entries_.end() && found->second.card != kNowhere)
      return cards_[found->second.card]->cancel_later(line);
    if (found != entries_.end()) {
      queue_.remove(found->second.sequence);
      entries_.erase(found);
      waiting_ = queue_.size();
    }
    line->set_cancelled();
  }
  line->tell();
}

bool Dispatcher::moves(const StreamLine& line) {
  const std::lock_guard lock(mutex_);
  if (has_one() || line.card >= cards_.size() || !cards_[line.card]->is_lost()) return false;
  return !cards_[first_there()]->is_lost();
}

SchedulerLoad Dispatcher::load() {
  SchedulerLoad sum;
  for (SchedulerDriver* card : cards_) {
    const SchedulerLoad one = card->load();
    sum.running += one.running;
    sum.waiting += one.waiting;
    sum.free_blocks += one.free_blocks;
    sum.blocks += one.blocks;
    sum.block_len = one.block_len;
    sum.host_cache_bytes += one.host_cache_bytes;
    sum.objects_created += one.objects_created;
    sum.devices.insert(sum.devices.end(), one.devices.begin(), one.devices.end());
  }
  sum.waiting += static_cast<uint32_t>(waiting_);
  return sum;
}

// The card that has most of this text.
size_t Dispatcher::holder(std::span<const uint32_t> tokens) {
  const std::lock_guard lock(mutex_);
  const std::vector<PrefixKey> keys = prefixes_.keys_of({}, tokens);
  size_t best = first_there();
  for (size_t i = 0; i < cards_.size(); ++i) {
    const bool is_more = prefixes_.known_tokens(i, keys) > prefixes_.known_tokens(best, keys);
    if (is_more && !cards_[i]->is_lost()) best = i;
  }
  return best;
}

Result<std::vector<uint8_t>> Dispatcher::save(std::span<const uint32_t> tokens) {
  return cards_[holder(tokens)]->save(tokens);
}

Result<void> Dispatcher::restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes) {
  const size_t card = holder(tokens);
  DP_CHECK(cards_[card]->restore(tokens, bytes));
  const std::lock_guard lock(mutex_);
  prefixes_.note(card, prefixes_.keys_of({}, tokens));
  return {};
}

}  // namespace doppler::engine
