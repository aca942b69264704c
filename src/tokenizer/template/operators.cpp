// Arithmetic, order and membership. Attribute, item and slice are in access.cpp, % on text in percent.cpp.
#include "tokenizer/template/operators.h"

#include <algorithm>
#include <cmath>

#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

const char* symbol(Operator op) {
  static constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**", "-", "+"};
  return kSymbols[static_cast<size_t>(op)];
}

Unexpected wrong_types(Machine& machine, Operator op, const Value& left, const Value& right) {
  if (left.is(Kind::kUndefined)) return machine.undefined_error(left);
  if (right.is(Kind::kUndefined)) return machine.undefined_error(right);
  return machine.error("operator %s cannot take %s and %s.", symbol(op), left.type_name(), right.type_name());
}

Unexpected overflow(Machine& machine, Operator op) {
  return machine.error("the result of operator %s does not fit 64 bits.", symbol(op));
}

Unexpected zero_divisor(Machine& machine) { return machine.error("division by zero."); }

Result<Value> power(Machine& machine, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return zero_divisor(machine);
    return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return overflow(machine, Operator::kPow);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow(machine, Operator::kPow);
  }
  return Value::integer(result);
}

Result<Value> on_integers(Machine& machine, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflowed = false;
  switch (op) {
    case Operator::kAdd:
      overflowed = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSub:
      overflowed = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMul:
      overflowed = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDiv:
      if (b == 0) return zero_divisor(machine);
      return Value::number(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kPow:
      return power(machine, a, b);
    default: {  // floor division and remainder: both round towards minus infinity
      if (b == 0) return zero_divisor(machine);
      if (b == -1) {
        if (op == Operator::kMod) return Value::integer(0);
        return on_integers(machine, Operator::kSub, 0, a);
      }
      const bool adjust = a % b != 0 && ((a % b < 0) != (b < 0));
      result = op == Operator::kMod ? a % b + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
    }
  }
  if (overflowed) return overflow(machine, op);
  return Value::integer(result);
}

Result<Value> on_floats(Machine& machine, Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::number(a + b);
    case Operator::kSub:
      return Value::number(a - b);
    case Operator::kMul:
      return Value::number(a * b);
    case Operator::kDiv:
      if (b == 0) return zero_divisor(machine);
      return Value::number(a / b);
    case Operator::kPow:
      if (a == 0 && b < 0) return zero_divisor(machine);
      if (a < 0 && b != std::floor(b)) return machine.error("a negative number has no fractional power.");
      return Value::number(std::pow(a, b));
    default: {
      if (b == 0) return zero_divisor(machine);
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) {
        rest += b;
        quotient -= 1;
      } else if (rest == 0) {
        rest = std::copysign(0.0, b);
      }
      if (op == Operator::kMod) return Value::number(rest);
      double floored = std::floor(quotient);
      if (quotient - floored > 0.5) floored += 1;  // undo the rounding of the division
      return Value::number(floored == 0 ? std::copysign(0.0, a / b) : floored);
    }
  }
}

Result<Value> repeat(Machine& machine, const Value& value, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (value.is(Kind::kText)) {
    const std::string& text = value.as_text();
    uint64_t size = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(text.size()), times, &size)) size = UINT64_MAX;
    DP_CHECK(machine.spend_bytes(size));
    std::string out;
    out.reserve(static_cast<size_t>(size));
    for (uint64_t i = 0; i < times && !text.empty(); ++i) out += text;
    return Value::text(std::move(out));
  }
  const Values& items = value.items();
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(items.size() * sizeof(Value)), times, &bytes))
    bytes = UINT64_MAX;
  DP_CHECK(machine.spend_bytes(bytes));
  Values out;
  out.reserve(static_cast<size_t>(bytes) / sizeof(Value));
  for (uint64_t i = 0; i < times && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return Value::list(std::move(out), value.kind());
}

bool can_repeat(const Value& value) {
  return value.is(Kind::kText) || value.is(Kind::kList) || value.is(Kind::kTuple);
}

Result<bool> equal_items(Machine& machine, const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    DP_TRY(const bool same, equals(machine, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

}  // namespace

Result<Value> arithmetic(Machine& machine, Operator op, const Value& left, const Value& right) {
  DP_CHECK(machine.spend(1));
  if (op == Operator::kMod && left.is(Kind::kText)) return format_percent(machine, left.as_text(), right);
  if (left.is_integral() && right.is_integral())
    return on_integers(machine, op, left.as_int(), right.as_int());
  if (left.is_number() && right.is_number())
    return on_floats(machine, op, left.as_double(), right.as_double());
  if (op == Operator::kAdd && left.is(Kind::kText) && right.is(Kind::kText)) {
    return machine.text(left.as_text() + right.as_text());
  }
  if (op == Operator::kAdd && left.kind() == right.kind() &&
      (left.is(Kind::kList) || left.is(Kind::kTuple))) {
    DP_CHECK(machine.spend_bytes((left.items().size() + right.items().size()) * sizeof(Value)));
    Values items = left.items();
    items.insert(items.end(), right.items().begin(), right.items().end());
    return Value::list(std::move(items), left.kind());
  }
  if (op == Operator::kMul && can_repeat(left) && right.is_integral())
    return repeat(machine, left, right.as_int());
  if (op == Operator::kMul && can_repeat(right) && left.is_integral())
    return repeat(machine, right, left.as_int());
  return wrong_types(machine, op, left, right);
}

Result<Value> negate(Machine& machine, const Value& value) {
  if (value.is(Kind::kFloat)) return Value::number(-value.as_double());
  if (value.is_integral()) return on_integers(machine, Operator::kSub, 0, value.as_int());
  if (value.is(Kind::kUndefined)) return machine.undefined_error(value);
  return machine.error("operator - cannot take %s.", value.type_name());
}

Result<bool> equals(Machine& machine, const Value& left, const Value& right) {
  DP_CHECK(machine.spend(1));
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return left.as_int() == right.as_int();
    return left.as_double() == right.as_double();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kText:
      return left.as_text() == right.as_text();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return equal_items(machine, left.items(), right.items());
    case Kind::kDict: {
      if (left.pairs().size() != right.pairs().size()) return false;
      for (const auto& [key, item] : left.pairs()) {
        bool found = false;
        for (const auto& [other_key, other] : right.pairs()) {
          DP_TRY(const bool same_key, equals(machine, key, other_key));
          if (!same_key) continue;
          DP_TRY(found, equals(machine, item, other));
          break;
        }
        if (!found) return false;
      }
      return true;
    }
    default:
      return left.same_as(right);
  }
}

Result<int> order(Machine& machine, const Value& left, const Value& right) {
  DP_CHECK(machine.spend(1));
  if (left.is_integral() && right.is_integral()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int() ? 1 : 0;
  }
  if (left.is_number() && right.is_number()) {
    const double a = left.as_double();
    const double b = right.as_double();
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (left.is(Kind::kText) && right.is(Kind::kText)) {
    DP_CHECK(machine.spend(left.as_text().size() / kBytesPerStep));
    return left.as_text().compare(right.as_text());
  }
  if (left.kind() == right.kind() && (left.is(Kind::kList) || left.is(Kind::kTuple))) {
    const Values& a = left.items();
    const Values& b = right.items();
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      DP_TRY(const bool same, equals(machine, a[i], b[i]));
      if (!same) return order(machine, a[i], b[i]);
    }
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
  }
  if (left.is(Kind::kUndefined)) return machine.undefined_error(left);
  if (right.is(Kind::kUndefined)) return machine.undefined_error(right);
  return machine.error("%s and %s have no order.", left.type_name(), right.type_name());
}

Result<bool> contains(Machine& machine, const Value& container, const Value& item) {
  if (container.is(Kind::kText)) {
    if (!item.is(Kind::kText)) return machine.error("only a str can be in a str, not %s.", item.type_name());
    DP_CHECK(machine.spend(1 + container.as_text().size() / kBytesPerStep));
    return container.as_text().find(item.as_text()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) {
    for (const auto& [key, value] : container.pairs()) {
      DP_TRY(const bool same, equals(machine, key, item));
      if (same) return true;
    }
    return false;
  }
  DP_TRY(const Value list, iterate(machine, container));
  for (const Value& candidate : list.items()) {
    DP_TRY(const bool same, equals(machine, candidate, item));
    if (same) return true;
  }
  return false;
}

Result<bool> compare(Machine& machine, Comparison op, const Value& left, const Value& right) {
  const bool is_nan = (left.is(Kind::kFloat) && std::isnan(left.as_double())) ||
                      (right.is(Kind::kFloat) && std::isnan(right.as_double()));
  switch (op) {
    case Comparison::kEq:
      return equals(machine, left, right);
    case Comparison::kNe: {
      DP_TRY(const bool same, equals(machine, left, right));
      return !same;
    }
    case Comparison::kIn:
      return contains(machine, right, left);
    case Comparison::kNotIn: {
      DP_TRY(const bool inside, contains(machine, right, left));
      return !inside;
    }
    default: {
      DP_TRY(const int sign, order(machine, left, right));
      if (is_nan) return false;
      if (op == Comparison::kLt) return sign < 0;
      if (op == Comparison::kLe) return sign <= 0;
      return op == Comparison::kGt ? sign > 0 : sign >= 0;
    }
  }
}

Result<Value> iterate(Machine& machine, const Value& value) {
  DP_CHECK(machine.spend(1));
  if (value.is_list_like()) return value;
  Values items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kText: {
      const std::string& text = value.as_text();
      for (size_t i = 0; i < text.size();) {
        const uint32_t bytes = code_point_at(text, i).bytes;
        DP_CHECK(machine.spend_bytes(sizeof(std::string)));
        items.push_back(Value::text(text.substr(i, bytes)));
        i += bytes;
      }
      break;
    }
    case Kind::kDict:
      for (const auto& [key, item] : value.pairs()) items.push_back(key);
      break;
    default:
      return machine.error("a value of type %s cannot be iterated.", value.type_name());
  }
  return machine.list(std::move(items));
}

Result<int64_t> length(Machine& machine, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      DP_CHECK(machine.spend(1 + value.as_text().size() / kBytesPerStep));
      return static_cast<int64_t>(count_code_points(value.as_text()));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.pairs().size());
    default:
      return machine.error("a value of type %s has no length.", value.type_name());
  }
}

}  // namespace doppler::tmpl
