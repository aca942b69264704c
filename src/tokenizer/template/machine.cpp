// The budget, and the makers of values. See machine.h.
#include "tokenizer/template/machine.h"

#include <cstdarg>
#include <cstdio>

#include "base/json.h"

namespace doppler::tmpl {

Result<void> Machine::spend(uint64_t steps) {
  steps_ += steps;
  if (steps > kMaxSteps || steps_ > kMaxSteps) {
    return error("rendering takes more than the allowed %llu steps.",
                 static_cast<unsigned long long>(kMaxSteps));
  }
  return {};
}

Result<void> Machine::spend_bytes(uint64_t bytes) {
  bytes_ += bytes;
  if (bytes > kMaxBytesBuilt || bytes_ > kMaxBytesBuilt) {
    return error("rendering builds more than the allowed %s of text and lists.",
                 format_bytes(kMaxBytesBuilt).c_str());
  }
  return spend(bytes / kBytesPerStep);
}

Result<Value> Machine::text(std::string text) {
  DP_CHECK(spend_bytes(text.size()));
  return Value::text(std::move(text));
}

Result<Value> Machine::list(Values items, Kind kind) {
  DP_CHECK(spend_bytes(items.size() * sizeof(Value)));
  Value value = Value::list(std::move(items), kind);
  if (value.depth() > kMaxValueDepth) return error("a list is nested deeper than %d levels.", kMaxValueDepth);
  return value;
}

Result<Value> Machine::dict(Pairs pairs) {
  DP_CHECK(spend_bytes(pairs.size() * 2 * sizeof(Value)));
  Value value = Value::dict(std::move(pairs));
  if (value.depth() > kMaxValueDepth) return error("a dict is nested deeper than %d levels.", kMaxValueDepth);
  return value;
}

Result<Value> Machine::from_json(const Json& json, int depth) {
  DP_CHECK(spend(1));
  if (depth > kMaxValueDepth) {
    return fail(ErrorKind::kInvalidInput, "The conversation is nested deeper than %d levels.",
                kMaxValueDepth);
  }
  switch (json.type()) {
    case Json::Type::kBool:
      return Value::boolean(json.get<bool>());
    case Json::Type::kInteger:
      return Value::integer(json.get<int64_t>());
    case Json::Type::kUnsigned: {
      const uint64_t number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(INT64_MAX)) {
        return fail(ErrorKind::kInvalidInput, "Integer %llu in the conversation is larger than 2^63 - 1.",
                    static_cast<unsigned long long>(number));
      }
      return Value::integer(static_cast<int64_t>(number));
    }
    case Json::Type::kReal:
      return Value::number(json.get<double>());
    case Json::Type::kString:
      return text(json.text());
    case Json::Type::kArray: {
      Values items;
      items.reserve(json.size());
      for (const Json& item : json) {
        DP_TRY(Value value, from_json(item, depth + 1));
        items.push_back(std::move(value));
      }
      return list(std::move(items));
    }
    case Json::Type::kObject: {
      Pairs pairs;
      pairs.reserve(json.size());
      for (const auto& [name, member] : json.items()) {
        DP_TRY(Value key, text(name));
        DP_TRY(Value value, from_json(member, depth + 1));
        pairs.emplace_back(std::move(key), std::move(value));
      }
      return dict(std::move(pairs));
    }
    default:
      return Value::none();
  }
}

Result<Namespace*> Machine::new_namespace() {
  DP_CHECK(spend_bytes(sizeof(Namespace)));
  namespaces_.push_back(std::make_unique<Namespace>());
  return namespaces_.back().get();
}

Result<LoopState*> Machine::new_loop() {
  DP_CHECK(spend_bytes(sizeof(LoopState)));
  loops_.push_back(std::make_unique<LoopState>());
  return loops_.back().get();
}

Result<CounterState*> Machine::new_counter(bool is_joiner, Values items) {
  DP_CHECK(spend_bytes(sizeof(CounterState) + items.size() * sizeof(Value)));
  counters_.push_back(
      std::make_unique<CounterState>(CounterState{.is_joiner = is_joiner, .items = std::move(items)}));
  return counters_.back().get();
}

Unexpected Machine::error(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  const std::string sentence = format_text_v(format, args);
  va_end(args);
  return fail(ErrorKind::kInvalidInput, "Line %u of the chat template: %s", line_, sentence.c_str());
}

Unexpected Machine::undefined_error(const Value& value) const { return error("%s.", value.hint().c_str()); }

}  // namespace doppler::tmpl
