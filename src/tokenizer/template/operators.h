// Python's operators on values: arithmetic, comparison, membership, iteration, attribute, item and slice.
#pragma once

#include "tokenizer/template/machine.h"

namespace doppler::tmpl {

enum class Operator : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kNeg, kPos };
enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

Result<Value> arithmetic(Machine& machine, Operator op, const Value& left, const Value& right);
Result<Value> negate(Machine& machine, const Value& value);
Result<bool> compare(Machine& machine, Comparison op, const Value& left, const Value& right);
Result<bool> equals(Machine& machine, const Value& left, const Value& right);
// <0, 0, >0; an error for values without an order.
Result<int> order(Machine& machine, const Value& left, const Value& right);
Result<bool> contains(Machine& machine, const Value& container, const Value& item);

// A list-like with the elements of anything that `for` accepts: code points of text, keys of a dict, nothing
// for undefined.
Result<Value> iterate(Machine& machine, const Value& value);
Result<int64_t> length(Machine& machine, const Value& value);

// x.name: Python attribute (a method) first, then item; x[key]: item first. Missing gives undefined.
Result<Value> get_attribute(Machine& machine, const Value& object, std::string_view name);
Result<Value> get_item(Machine& machine, const Value& object, const Value& key);
// Bounds are none or integers.
Result<Value> get_slice(Machine& machine, const Value& object, const Value& start, const Value& stop,
                        const Value& step);

// Puts the pair in, replacing an equal key; refuses keys that Python cannot hash.
Result<void> put_pair(Machine& machine, Pairs& pairs, Value key, Value value);

// "%s and %d" % values.
Result<Value> format_percent(Machine& machine, std::string_view pattern, const Value& values);

}  // namespace doppler::tmpl
