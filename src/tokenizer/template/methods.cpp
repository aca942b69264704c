// Methods of dict, list, tuple and loop: one row each in kMethods. Those of str are in methods_text.cpp.
#include "tokenizer/template/methods.h"

#include <utility>

#include "tokenizer/template/operators.h"

namespace doppler::tmpl {
namespace {

Result<Value> count_items(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "count()", arguments, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : self.items()) {
    DP_TRY(const bool same, equals(m, item, *a[0]));
    count += same ? 1 : 0;
  }
  return Value::integer(count);
}

Result<Value> index_of(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "index()", arguments, {"value"}, 1));
  for (size_t i = 0; i < self.items().size(); ++i) {
    DP_TRY(const bool same, equals(m, self.items()[i], *a[0]));
    if (same) return Value::integer(static_cast<int64_t>(i));
  }
  return m.error("index() did not find the value.");
}

enum class Part { kKeys, kValues, kItems };

template <Part kPart>
Result<Value> dict_view(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this dict method", arguments, {}));
  Values items;
  for (const auto& [key, value] : self.pairs()) {
    if (kPart == Part::kKeys)
      items.push_back(key);
    else if (kPart == Part::kValues)
      items.push_back(value);
    else {
      DP_TRY(Value pair, m.list({key, value}, Kind::kTuple));
      items.push_back(std::move(pair));
    }
  }
  return m.list(std::move(items), Kind::kView);
}

Result<Value> dict_get(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "get()", arguments, {"key", "default"}, 1));
  for (const auto& [key, value] : self.pairs()) {
    DP_TRY(const bool same, equals(m, key, *a[0]));
    if (same) return value;
  }
  return a[1] ? *a[1] : Value::none();
}

Result<Value> itself(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "copy()", arguments, {}));
  return self;  // values cannot change, so a copy cannot be told apart
}

Result<Value> loop_cycle(Machine& m, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return m.error("loop.cycle() needs at least one argument.");
  return arguments.positional[self.as_loop()->index0 % arguments.positional.size()];
}

Result<Value> loop_changed(Machine& m, const Value& self, const Arguments& arguments) {
  LoopState& loop = *self.as_loop();
  bool changed = !loop.last_changed || loop.last_changed->size() != arguments.positional.size();
  for (size_t i = 0; !changed && i < arguments.positional.size(); ++i) {
    DP_TRY(const bool same, equals(m, (*loop.last_changed)[i], arguments.positional[i]));
    changed = !same;
  }
  loop.last_changed = arguments.positional;
  return Value::boolean(changed);
}

// Methods of a cycler.
Result<Value> counter_next(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "next()", arguments, {}));
  CounterState& counter = *self.as_counter();
  const size_t at = std::exchange(counter.at, (counter.at + 1) % counter.items.size());
  return counter.items[at];
}
Result<Value> counter_reset(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "reset()", arguments, {}));
  self.as_counter()->at = 0;
  return Value::none();
}

constexpr MethodRow kMethods[] = {
    {Kind::kDict, "items", dict_view<Part::kItems>},
    {Kind::kDict, "keys", dict_view<Part::kKeys>},
    {Kind::kDict, "values", dict_view<Part::kValues>},
    {Kind::kDict, "get", dict_get},
    {Kind::kDict, "copy", itself},
    {Kind::kDict, "clear", nullptr},
    {Kind::kDict, "pop", nullptr},
    {Kind::kDict, "popitem", nullptr},
    {Kind::kDict, "setdefault", nullptr},
    {Kind::kDict, "update", nullptr},
    {Kind::kList, "count", count_items},
    {Kind::kList, "index", index_of},
    {Kind::kList, "copy", itself},
    {Kind::kList, "append", nullptr},
    {Kind::kList, "extend", nullptr},
    {Kind::kList, "insert", nullptr},
    {Kind::kList, "pop", nullptr},
    {Kind::kList, "remove", nullptr},
    {Kind::kList, "reverse", nullptr},
    {Kind::kList, "sort", nullptr},
    {Kind::kTuple, "count", count_items},
    {Kind::kTuple, "index", index_of},
    {Kind::kLoop, "cycle", loop_cycle},
    {Kind::kLoop, "changed", loop_changed},
    {Kind::kCounter, "next", counter_next},
    {Kind::kCounter, "reset", counter_reset},
};

const MethodRow* find_row(Kind kind, std::string_view name) {
  const std::span<const MethodRow> rows = kind == Kind::kText ? text_methods() : std::span(kMethods);
  for (const MethodRow& row : rows) {
    if (row.kind == kind && row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

Result<bool> has_method(Machine& machine, const Value& object, std::string_view name) {
  const MethodRow* row = find_row(object.kind(), name);
  if (row && !row->method) {
    return machine.error("%s.%s() would change a value, which a chat template may not do.",
                         object.type_name(), std::string(name).c_str());
  }
  return row != nullptr;
}

Result<Value> call_method(Machine& machine, const Value& object, std::string_view name,
                          const Arguments& arguments) {
  DP_CHECK(machine.spend(1));
  const MethodRow* row = find_row(object.kind(), name);
  if (!row || !row->method) {
    return machine.error("%s has no method '%s'.", object.type_name(), printable(name).c_str());
  }
  return row->method(machine, object, arguments);
}

}  // namespace doppler::tmpl
