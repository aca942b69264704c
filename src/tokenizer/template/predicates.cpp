// The tests of {{ value is name(arguments) }}. See filters.h.
#include "tokenizer/template/filters.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

// Tests that need only the value.
template <bool (*kTest)(const Value&)>
Result<bool> simple(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this test", arguments, {}));
  return kTest(self);
}

template <Comparison kOp>
Result<bool> compared(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "this test", arguments, {"other"}, 1));
  return compare(m, kOp, self, *a[0]);
}

bool is_defined(const Value& v) { return !v.is(Kind::kUndefined); }
bool is_undefined(const Value& v) { return v.is(Kind::kUndefined); }
bool is_none(const Value& v) { return v.is(Kind::kNone); }
bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_true(const Value& v) { return v.is(Kind::kBool) && v.as_bool(); }
bool is_false(const Value& v) { return v.is(Kind::kBool) && !v.as_bool(); }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is(Kind::kText); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_iterable(const Value& v) {
  return v.is_list_like() || v.is(Kind::kText) || v.is(Kind::kDict) || v.is(Kind::kUndefined);
}
bool is_sequence(const Value& v) { return is_iterable(v) && !v.is(Kind::kView) && !v.is(Kind::kGenerator); }
bool is_callable(const Value& v) {
  return v.is(Kind::kMacro) || v.is(Kind::kFunction) || v.is(Kind::kMethod) || v.is(Kind::kUndefined);
}

Result<bool> is_divisible(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "test divisibleby", arguments, {"num"}, 1));
  DP_TRY(const Value rest, arithmetic(m, Operator::kMod, self, *a[0]));
  return equals(m, rest, Value::integer(0));
}

template <int kRest>
Result<bool> is_even_or_odd(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this test", arguments, {}));
  DP_TRY(const Value rest, arithmetic(m, Operator::kMod, self, Value::integer(2)));
  return equals(m, rest, Value::integer(kRest));
}

Result<bool> is_same(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "test sameas", arguments, {"other"}, 1));
  return self.same_as(*a[0]);
}

template <bool kUpper>
Result<bool> has_case(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this test", arguments, {}));
  DP_TRY(const std::string text, to_string(m, self));
  bool any = false;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).bytes) {
    const uint32_t c = code_point_at(text, i).value;
    if (kUpper ? is_lower(c) : is_upper(c)) return false;
    any = any || (kUpper ? is_upper(c) : is_lower(c));
  }
  return any;
}

Result<bool> names_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "test filter", arguments, {}));
  return self.is(Kind::kText) && find_filter(self.as_text()) != nullptr;
}

Result<bool> names_test(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "test test", arguments, {}));
  return self.is(Kind::kText) && find_test(self.as_text()) != nullptr;
}

struct Row {
  std::string_view name;
  Test test;
};

constexpr Row kTests[] = {
    {"defined", simple<is_defined>},
    {"undefined", simple<is_undefined>},
    {"none", simple<is_none>},
    {"boolean", simple<is_boolean>},
    {"true", simple<is_true>},
    {"false", simple<is_false>},
    {"integer", simple<is_integer>},
    {"float", simple<is_float>},
    {"number", simple<is_number>},
    {"string", simple<is_string>},
    {"mapping", simple<is_mapping>},
    {"iterable", simple<is_iterable>},
    {"sequence", simple<is_sequence>},
    {"callable", simple<is_callable>},
    {"odd", is_even_or_odd<1>},
    {"even", is_even_or_odd<0>},
    {"divisibleby", is_divisible},
    {"sameas", is_same},
    {"upper", has_case<true>},
    {"lower", has_case<false>},
    {"filter", names_filter},
    {"test", names_test},
    {"in", compared<Comparison::kIn>},
    {"eq", compared<Comparison::kEq>},
    {"equalto", compared<Comparison::kEq>},
    {"==", compared<Comparison::kEq>},
    {"ne", compared<Comparison::kNe>},
    {"!=", compared<Comparison::kNe>},
    {"lt", compared<Comparison::kLt>},
    {"lessthan", compared<Comparison::kLt>},
    {"<", compared<Comparison::kLt>},
    {"le", compared<Comparison::kLe>},
    {"<=", compared<Comparison::kLe>},
    {"gt", compared<Comparison::kGt>},
    {"greaterthan", compared<Comparison::kGt>},
    {">", compared<Comparison::kGt>},
    {"ge", compared<Comparison::kGe>},
    {">=", compared<Comparison::kGe>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const Row& row : kTests) {
    if (row.name == name) return row.test;
  }
  return nullptr;
}

}  // namespace doppler::tmpl
