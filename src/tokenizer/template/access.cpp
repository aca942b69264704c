// Attribute, item and slice, with jinja2's order of trying them and its words for what is missing.
#include <algorithm>

#include "tokenizer/template/methods.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

Value missing(const Value& object, std::string_view name) {
  const std::string shown = printable(name);
  if (object.is(Kind::kNone))
    return Value::undefined(format_text("'None' has no attribute '%s'", shown.c_str()));
  return Value::undefined(
      format_text("'%s object' has no attribute '%s'", object.type_name(), shown.c_str()));
}

Result<Value> loop_attribute(Machine& machine, const Value& object, std::string_view name) {
  const LoopState& loop = *object.as_loop();
  const auto count = [](size_t n) { return Value::integer(static_cast<int64_t>(n)); };
  const size_t i = loop.index0;
  if (name == "index") return count(i + 1);
  if (name == "index0") return count(i);
  if (name == "length") return count(loop.length);
  if (name == "revindex") return count(loop.length - i);
  if (name == "revindex0") return count(loop.length - i - 1);
  if (name == "first") return Value::boolean(i == 0);
  if (name == "last") return Value::boolean(i + 1 == loop.length);
  if (name == "depth") return count(loop.depth0 + 1);
  if (name == "depth0") return count(loop.depth0);
  if (name == "previtem") {
    const bool ended = loop.items.is(Kind::kUndefined);
    return ended || i == 0 ? Value::undefined("there is no previous item") : loop.items.items()[i - 1];
  }
  if (name == "nextitem") {
    const bool ended = loop.items.is(Kind::kUndefined);
    return ended || i + 1 >= loop.length ? Value::undefined("there is no next item")
                                         : loop.items.items()[i + 1];
  }
  DP_TRY(const bool is_method, has_method(machine, object, name));
  return is_method ? Value::method(object, name) : missing(object, name);
}

// The index of a code point or element, or -1 when out of range.
int64_t wrap(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

struct Range {
  int64_t start, stop, step;
};

// Python's slice.indices.
Result<Range> slice_range(Machine& machine, const Value& start, const Value& stop, const Value& step,
                          int64_t size) {
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->is(Kind::kNone) && !bound->is_integral()) {
      return machine.error("a slice bound must be an integer, not %s.", bound->type_name());
    }
  }
  Range range{0, 0, step.is(Kind::kNone) ? 1 : step.as_int()};
  if (range.step == 0) return machine.error("a slice step must not be 0.");
  const bool back = range.step < 0;
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (bound.is(Kind::kNone)) return otherwise;
    int64_t index = bound.as_int();
    if (index < 0) index = std::max<int64_t>(index + size, back ? -1 : 0);
    return std::min(index, back ? size - 1 : size);
  };
  range.start = clamp(start, back ? size - 1 : 0);
  range.stop = clamp(stop, back ? -1 : size);
  range.step = std::clamp<int64_t>(range.step, -size - 1, size + 1);  // further steps leave the value anyway
  return range;
}

}  // namespace

Result<Value> get_attribute(Machine& machine, const Value& object, std::string_view name) {
  DP_CHECK(machine.spend(1));
  if (object.is(Kind::kUndefined)) return machine.undefined_error(object);
  if (object.is(Kind::kLoop)) return loop_attribute(machine, object, name);
  if (object.is(Kind::kCounter) && name == "current" && !object.as_counter()->is_joiner)
    return object.as_counter()->items[object.as_counter()->at];
  if (object.is_group() && (name == "grouper" || name == "list"))
    return object.items()[name == "list" ? 1 : 0];
  if (object.is(Kind::kNamespace)) {
    for (const auto& [key, value] : object.as_namespace()->items) {
      if (key == name) return value;
    }
    return missing(object, name);
  }
  DP_TRY(const bool is_method, has_method(machine, object, name));
  if (is_method) return Value::method(object, name);
  if (object.is(Kind::kDict)) {
    DP_CHECK(machine.spend(object.pairs().size() / kBytesPerStep));
    if (const Value* item = object.find(name)) return *item;
  }
  return missing(object, name);
}

Result<Value> get_item(Machine& machine, const Value& object, const Value& key) {
  DP_CHECK(machine.spend(1));
  if (object.is(Kind::kUndefined)) return machine.undefined_error(object);
  if (object.is(Kind::kDict)) {
    if (key.is(Kind::kText)) {
      DP_CHECK(machine.spend(object.pairs().size() / kBytesPerStep));
      if (const Value* item = object.find(key.as_text())) return *item;
    } else {
      for (const auto& [candidate, item] : object.pairs()) {
        DP_TRY(const bool same, equals(machine, candidate, key));
        if (same) return item;
      }
    }
  } else if (key.is_integral()) {
    const bool indexed = object.is(Kind::kList) || object.is(Kind::kTuple) || object.is(Kind::kRange);
    if (indexed) {
      const int64_t index = wrap(key.as_int(), static_cast<int64_t>(object.items().size()));
      if (index >= 0) return object.items()[static_cast<size_t>(index)];
    } else if (object.is(Kind::kText)) {
      DP_CHECK(machine.spend(object.as_text().size() / kBytesPerStep));
      const std::vector<size_t> offsets = code_point_offsets(object.as_text());
      const int64_t index = wrap(key.as_int(), static_cast<int64_t>(offsets.size()) - 1);
      if (index >= 0) {
        const size_t at = offsets[static_cast<size_t>(index)];
        return machine.text(object.as_text().substr(at, offsets[static_cast<size_t>(index) + 1] - at));
      }
    }
    return Value::undefined(format_text("'%s object' has no element %lld", object.type_name(),
                                        static_cast<long long>(key.as_int())));
  }
  if (key.is(Kind::kText)) {
    const bool has_names = object.is(Kind::kLoop) || object.is(Kind::kNamespace) ||
                           object.is(Kind::kCounter) || object.is_group();
    if (has_names) return get_attribute(machine, object, key.as_text());
    DP_TRY(const bool is_method, has_method(machine, object, key.as_text()));
    if (is_method) return Value::method(object, key.as_text());
    return missing(object, key.as_text());
  }
  return Value::undefined(format_text("'%s object' has no such element", object.type_name()));
}

Result<Value> get_slice(Machine& machine, const Value& object, const Value& start, const Value& stop,
                        const Value& step) {
  if (object.is(Kind::kUndefined)) return machine.undefined_error(object);
  if (object.is(Kind::kText)) {
    const std::string& text = object.as_text();
    DP_CHECK(machine.spend(1 + text.size() / kBytesPerStep));
    const std::vector<size_t> offsets = code_point_offsets(text);
    DP_TRY(const Range range,
           slice_range(machine, start, stop, step, static_cast<int64_t>(offsets.size()) - 1));
    std::string out;
    for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
      const auto at = static_cast<size_t>(i);
      out.append(text, offsets[at], offsets[at + 1] - offsets[at]);
    }
    return machine.text(std::move(out));
  }
  if (!object.is(Kind::kList) && !object.is(Kind::kTuple) && !object.is(Kind::kRange)) {
    return machine.error("a value of type %s cannot be sliced.", object.type_name());
  }
  const Values& items = object.items();
  DP_TRY(const Range range, slice_range(machine, start, stop, step, static_cast<int64_t>(items.size())));
  Values out;
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    out.push_back(items[static_cast<size_t>(i)]);
  }
  return machine.list(std::move(out), object.kind());
}

Result<void> put_pair(Machine& machine, Pairs& pairs, Value key, Value value) {
  if (key.is(Kind::kList) || key.is(Kind::kDict)) {
    return machine.error("a %s cannot be the key of a dict.", key.type_name());
  }
  for (auto& [existing, item] : pairs) {
    DP_TRY(const bool same, equals(machine, existing, key));
    if (same) {
      item = std::move(value);
      return {};
    }
  }
  pairs.emplace_back(std::move(key), std::move(value));
  return {};
}

}  // namespace doppler::tmpl
