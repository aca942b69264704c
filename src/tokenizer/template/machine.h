// Shared by every operation of a rendering: the budget of steps and bytes, the current template line for error
// sentences, and the owner of the few mutable things (namespaces, loops). All values made while rendering are made
// here, so that no template can outgrow limits.h.
// Read next: arguments.h (how filters, tests and methods take their arguments).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "tokenizer/template/date_time.h"
#include "tokenizer/template/limits.h"
#include "tokenizer/template/value.h"

namespace doppler::tmpl {

struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
};

struct Node;   // ast.h
struct Scope;  // interpreter.h

// One running `for`.
struct LoopState {
  Value items;                 // a list
  const Node* node = nullptr;  // of the statement; null once it has ended
  Scope* scope = nullptr;      // where it stands
  size_t depth0 = 0;           // calls of itself around it
  size_t index0 = 0;
  size_t length = 0;
  std::optional<Values> last_changed;  // of loop.changed()
};

// The values of joiner() and cycler().
struct CounterState {
  bool is_joiner = false;
  Values items;  // of a joiner its separator
  size_t at = 0;
};

class Machine {
 public:
  explicit Machine(const DateTime& now) : now_(now) {}

  // Both fail with a sentence once the rendering has used up its share.
  Result<void> spend(uint64_t steps);
  Result<void> spend_bytes(uint64_t bytes);

  Result<Value> text(std::string text);
  Result<Value> list(Values items, Kind kind = Kind::kList);
  Result<Value> dict(Pairs pairs);
  Result<Value> from_json(const Json& json, int depth = 0);
  Result<Namespace*> new_namespace();
  Result<LoopState*> new_loop();
  Result<CounterState*> new_counter(bool is_joiner, Values items);

  // "Line 12 of the chat template: <sentence>"; the sentence ends with a full stop.
  [[gnu::format(printf, 2, 3)]] Unexpected error(const char* format, ...) const;
  Unexpected undefined_error(const Value& value) const;

  void set_line(uint32_t line) { line_ = line; }
  const DateTime& now() const { return now_; }

 private:
  DateTime now_;
  uint32_t line_ = 1;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<LoopState>> loops_;
  std::vector<std::unique_ptr<CounterState>> counters_;
};

}  // namespace doppler::tmpl
