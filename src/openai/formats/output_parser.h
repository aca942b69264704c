// Takes a model's output apart while it arrives: text, reasoning and calls of tools. Models mark them in different
// ways; a format (formats.h) knows the marks and has a reader for the inside of a call. Everything goes character by
// character, so that it does not matter where a text was cut. Read next: formats.h, json_call.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doppler::openai {

struct AnswerEvent {
  enum class Kind : uint8_t {
    kText,
    kReasoning,
    kCall,       // a call begins; text: the function's name
    kArguments,  // the next piece of its arguments, which together are JSON
  };
  Kind kind;
  std::string text;
};

// Takes events; joins pieces of one kind.
class AnswerEvents {
 public:
  void add(AnswerEvent::Kind kind, std::string_view text);
  std::vector<AnswerEvent> take() { return std::exchange(events_, {}); }
  // From now on a second call ends the answer: neither it nor the text after it is taken.
  void allow_one_call() { one_call_ = true; }
  bool is_closed() const { return is_closed_; }

 private:
  std::vector<AnswerEvent> events_;
  bool one_call_ = false, has_call_ = false, is_closed_ = false;
};

enum class Taken : uint8_t {
  kMore,
  kEnd,     // it is whole with this character
  kRefused  // this character does not belong to it
};

// Reads the text after the mark that opens a call.
class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual Taken take(char c, AnswerEvents& out) = 0;
  // The answer has ended: what was held back.
  virtual void finish(AnswerEvents&) {}
  // True if it gave out a call.
  virtual bool has_begun() const = 0;
};

// Marks around reasoning.
struct ReasoningMarks {
  std::string_view opening, closing;
};

struct CallFormat;  // formats.h

class OutputParser {
 public:
  struct Setup {
    const CallFormat* calls = nullptr;          // null: calls are not looked for
    const ReasoningMarks* reasoning = nullptr;  // null: nor is reasoning
    bool begins_in_reasoning = false;           // the prompt ends after the opening mark
    bool continues = false;                     // it ends within a text of the answer
    std::string tools;                          // JSON text of the tools that may be called
    bool one_call = false;                      // a second call ends the answer and is left out
  };
  explicit OutputParser(Setup setup);
  // No format at all: everything is text.
  OutputParser() : OutputParser(Setup{}) {}

  std::vector<AnswerEvent> push(std::string_view text);
  // The answer has ended: what was held back.
  std::vector<AnswerEvent> finish();
  // No more events come, whatever is pushed.
  bool is_closed() const { return events_.is_closed(); }

 private:
  enum class Mode : uint8_t { kText, kReasoning, kCall };

  void take(char c);
  void scan(char c);
  void emit(char c);
  void flush_space();
  void begin_call(std::string opening);
  void enter(Mode mode);
  std::string_view call_opening() const;
  std::string_view reasoning_mark() const;

  Setup setup_;
  Mode mode_ = Mode::kText;
  AnswerEvents events_;
  std::string held_;       // may become a mark
  std::string space_;      // dropped if a mark follows it
  std::string call_text_;  // of a call that is not certain yet
  std::unique_ptr<CallReader> reader_;
  bool at_start_ = true;      // nothing but space so far
  bool drops_space_ = false;  // after a mark
};

}  // namespace doppler::openai
