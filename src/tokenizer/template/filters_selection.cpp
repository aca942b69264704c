// map, select, reject, selectattr, rejectattr: filters that run another filter or a test on every element.
#include "tokenizer/template/filters.h"
#include "tokenizer/template/operators.h"

namespace doppler::tmpl {
namespace {

// The arguments from the n-th on, for the filter or test that is called.
Arguments rest_of(const Arguments& arguments, size_t n) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<std::ptrdiff_t>(n));
  return rest;
}

Result<Value> map_by_attribute(Machine& m, const Value& list, const Arguments& arguments) {
  const Value* attribute = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute")
      attribute = &value;
    else if (name == "default")
      otherwise = &value;
    else
      return m.error("filter map has no argument '%s'.", printable(name).c_str());
  }
  if (!attribute) return m.error("filter map needs a filter name or attribute=.");
  Values out;
  for (const Value& item : list.items()) {
    DP_TRY(Value value, follow_path(m, item, *attribute, otherwise));
    out.push_back(std::move(value));
  }
  return m.list(std::move(out), Kind::kGenerator);
}

Result<Value> map_filter(Machine& m, const Value& self, const Arguments& arguments) {
  if (!self.truthy()) return m.list({}, Kind::kGenerator);  // jinja2 takes none and 0 for empty here
  DP_TRY(const Value list, iterate(m, self));
  if (arguments.positional.empty()) return map_by_attribute(m, list, arguments);
  DP_TRY(const std::string_view name, text_or(m, "filter map", &arguments.positional[0], ""));
  const Filter filter = find_filter(name);
  if (!filter) return m.error("there is no filter '%s'.", printable(name).c_str());
  // map('map', 'map', ...) would otherwise recurse as deep as its arguments.
  if (filter == map_filter) return m.error("filter map cannot map itself.");
  const Arguments rest = rest_of(arguments, 1);
  Values out;
  for (const Value& item : list.items()) {
    DP_CHECK(m.spend(1));
    DP_TRY(Value value, filter(m, item, rest));
    out.push_back(std::move(value));
  }
  return m.list(std::move(out), Kind::kGenerator);
}

// kByAttribute: the first argument names what of the element is tested.
template <bool kKeep, bool kByAttribute>
Result<Value> select_filter(Machine& m, const Value& self, const Arguments& arguments) {
  constexpr size_t kBefore = kByAttribute ? 1 : 0;
  if (!self.truthy()) return m.list({}, Kind::kGenerator);  // as for map
  if (arguments.positional.size() < kBefore) return m.error("this filter needs the name of an attribute.");
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > kBefore) {
    DP_TRY(const std::string_view name, text_or(m, "this filter", &arguments.positional[kBefore], ""));
    test = find_test(name);
    if (!test) return m.error("there is no test '%s'.", printable(name).c_str());
    rest = rest_of(arguments, kBefore + 1);
  }
  DP_TRY(const Value list, iterate(m, self));
  Values out;
  for (const Value& item : list.items()) {
    DP_CHECK(m.spend(1));
    Value subject = item;
    if (kByAttribute) {
      DP_TRY(subject, follow_path(m, item, arguments.positional[0]));
    }
    bool chosen = subject.truthy();
    if (test) {
      DP_TRY(chosen, test(m, subject, rest));
    }
    if (chosen == kKeep) out.push_back(item);
  }
  return m.list(std::move(out), Kind::kGenerator);
}

constexpr FilterRow kSelectionFilters[] = {
    {"map", map_filter},
    {"select", select_filter<true, false>},
    {"reject", select_filter<false, false>},
    {"selectattr", select_filter<true, true>},
    {"rejectattr", select_filter<false, true>},
};

}  // namespace

std::span<const FilterRow> selection_filters() { return kSelectionFilters; }

Result<Value> follow_path(Machine& machine, const Value& object, const Value& path, const Value* otherwise) {
  if (path.is_integral()) {
    DP_TRY(Value value, get_item(machine, object, path));
    return value.is(Kind::kUndefined) && otherwise ? *otherwise : std::move(value);
  }
  DP_TRY(const std::string_view text, text_or(machine, "an attribute path", &path, ""));
  Value value = object;
  for (const std::string& part : split(text, '.')) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    const Value key = digits ? Value::integer(parse_int(part).value_or(0)) : Value::text(part);
    DP_TRY(value, get_item(machine, value, key));
    if (value.is(Kind::kUndefined) && otherwise) value = *otherwise;
  }
  return value;
}

}  // namespace doppler::tmpl
