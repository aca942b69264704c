#include "openai/formats/output_parser.h"

#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

bool is_white_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

void AnswerEvents::add(AnswerEvent::Kind kind, std::string_view text) {
  if (text.empty() || is_closed_) return;
  if (kind == AnswerEvent::Kind::kCall) {
    is_closed_ = one_call_ && has_call_;
    if (is_closed_) return;
    has_call_ = true;
  }
  if (!events_.empty() && events_.back().kind == kind && kind != AnswerEvent::Kind::kCall) {
    events_.back().text += text;
  } else {
    events_.push_back({kind, std::string(text)});
  }
}

OutputParser::OutputParser(Setup setup) : setup_(std::move(setup)) {
  if (setup_.one_call) events_.allow_one_call();
  if (setup_.calls && !setup_.calls->answer_opening.empty()) {
    begin_call("");
    if (setup_.continues) push(setup_.calls->answer_opening);
  } else if (setup_.reasoning && setup_.begins_in_reasoning) {
    enter(Mode::kReasoning);
    drops_space_ = !setup_.continues;
  }
  at_start_ &= !setup_.continues;
}

std::string_view OutputParser::call_opening() const {
  return mode_ == Mode::kText && setup_.calls ? setup_.calls->opening : std::string_view();
}

// Reasoning opens an answer; later its mark is text.
std::string_view OutputParser::reasoning_mark() const {
  if (!setup_.reasoning) return {};
  if (mode_ == Mode::kReasoning) return setup_.reasoning->closing;
  return at_start_ ? setup_.reasoning->opening : std::string_view();
}

std::vector<AnswerEvent> OutputParser::push(std::string_view text) {
  if (!setup_.calls && !setup_.reasoning) {
    events_.add(AnswerEvent::Kind::kText, text);
  } else {
    for (const char c : text) take(c);
  }
  return events_.take();
}

std::vector<AnswerEvent> OutputParser::finish() {
  if (reader_) reader_->finish(events_);
  if (reader_ && !reader_->has_begun()) {
    enter(Mode::kText);
    drops_space_ = false;
    for (const char c : std::exchange(call_text_, {})) emit(c);
  }
  reader_ = nullptr;
  for (const char c : std::exchange(held_, {})) emit(c);
  flush_space();
  return events_.take();
}

void OutputParser::take(char c) {
  if (mode_ != Mode::kCall) return scan(c);
  if (!reader_->has_begun()) call_text_ += c;
  const Taken taken = reader_->take(c, events_);
  if (taken == Taken::kMore) return;
  const bool was_call = reader_->has_begun();
  reader_ = nullptr;
  enter(Mode::kText);
  at_start_ = false;
  if (was_call) {
    if (taken == Taken::kRefused) scan(c);
    return;
  }
  drops_space_ = false;
  for (const char text : std::exchange(call_text_, {})) emit(text);
}

void OutputParser::scan(char c) {
  const bool opens = mode_ == Mode::kText && setup_.calls && setup_.calls->opens_with_brace && at_start_;
  if (opens && held_.empty() && c == '{') {
    begin_call("");
    return take(c);
  }
  held_ += c;
  while (!held_.empty()) {
    bool may_become = false;
    for (const std::string_view mark : {call_opening(), reasoning_mark()}) {
      if (mark.empty()) continue;
      if (mark == held_) {
        held_.clear();
        return mark == call_opening() ? begin_call(std::string(mark))
                                      : enter(mode_ == Mode::kReasoning ? Mode::kText : Mode::kReasoning);
      }
      may_become |= mark.starts_with(held_);
    }
    if (may_become) return;
    const char first = held_.front();
    held_.erase(0, 1);
    emit(first);
  }
}

void OutputParser::emit(char c) {
  if (is_white_space(c)) {
    if (!drops_space_) space_ += c;
    return;
  }
  flush_space();
  drops_space_ = false;
  at_start_ = false;
  events_.add(mode_ == Mode::kReasoning ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText,
              std::string_view(&c, 1));
}

void OutputParser::flush_space() {
  events_.add(mode_ == Mode::kReasoning ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText, space_);
  space_.clear();
}

void OutputParser::begin_call(std::string opening) {
  call_text_ = space_ + opening;
  enter(Mode::kCall);
  reader_ = setup_.calls->make_reader(setup_.tools);
}

// Space around a mark belongs to it.
void OutputParser::enter(Mode mode) {
  at_start_ = mode_ == Mode::kReasoning && mode == Mode::kText;
  mode_ = mode;
  space_.clear();
  drops_space_ = true;
}

}  // namespace doppler::openai
