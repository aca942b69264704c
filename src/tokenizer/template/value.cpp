// Construction and the questions every value answers. See value.h.
#include "tokenizer/template/value.h"

#include <algorithm>

namespace doppler::tmpl {

Value Value::undefined(std::string hint) {
  Value value;
  value.object_ = std::make_shared<const std::string>(std::move(hint));
  return value;
}

Value Value::none() {
  Value value;
  value.kind_ = Kind::kNone;
  return value;
}

Value Value::boolean(bool flag) {
  Value value;
  value.kind_ = Kind::kBool;
  value.plain_.integer = flag ? 1 : 0;
  return value;
}

Value Value::integer(int64_t number) {
  Value value;
  value.kind_ = Kind::kInt;
  value.plain_.integer = number;
  return value;
}

Value Value::number(double number) {
  Value value;
  value.kind_ = Kind::kFloat;
  value.plain_.number = number;
  return value;
}

Value Value::text(std::string text) {
  Value value;
  value.kind_ = Kind::kText;
  value.object_ = std::make_shared<const std::string>(std::move(text));
  return value;
}

Value Value::list(Values items, Kind kind) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  Value value;
  value.kind_ = kind;
  value.object_ = std::make_shared<const ListObject>(ListObject{std::move(items), depth + 1});
  return value;
}

Value Value::dict(Pairs pairs) {
  int depth = 0;
  for (const auto& [key, item] : pairs) depth = std::max({depth, key.depth(), item.depth()});
  Value value;
  value.kind_ = Kind::kDict;
  value.object_ = std::make_shared<const DictObject>(DictObject{std::move(pairs), depth + 1});
  return value;
}

Value Value::method(Value self, std::string_view name) {
  Value value;
  value.kind_ = Kind::kMethod;
  value.object_ = std::make_shared<const MethodObject>(MethodObject{std::move(self), std::string(name)});
  return value;
}

Value Value::function(int id) {
  Value value;
  value.kind_ = Kind::kFunction;
  value.plain_.integer = id;
  return value;
}

Value Value::of(Namespace* state) {
  Value value;
  value.kind_ = Kind::kNamespace;
  value.plain_.pointer = state;
  return value;
}

Value Value::of(LoopState* state) {
  Value value;
  value.kind_ = Kind::kLoop;
  value.plain_.pointer = state;
  return value;
}

Value Value::of(CounterState* state) {
  Value value;
  value.kind_ = Kind::kCounter;
  value.plain_.pointer = state;
  return value;
}

Value Value::group(Value key, Value items) {
  Value value = list({std::move(key), std::move(items)}, Kind::kTuple);
  value.plain_.integer = 1;
  return value;
}

Value Value::of(MacroState* state) {
  Value value;
  value.kind_ = Kind::kMacro;
  value.plain_.pointer = state;
  return value;
}

const Values& Value::items() const { return static_cast<const ListObject*>(object_.get())->items; }
const Pairs& Value::pairs() const { return static_cast<const DictObject*>(object_.get())->pairs; }
const MethodObject& Value::as_method() const { return *static_cast<const MethodObject*>(object_.get()); }

std::string Value::hint() const { return object_ ? as_text() : "the value is undefined"; }

bool Value::truthy() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return plain_.integer != 0;
    case Kind::kFloat:
      return plain_.number != 0.0;
    case Kind::kText:
      return !as_text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return !items().empty();
    case Kind::kDict:
      return !pairs().empty();
    default:
      return true;
  }
}

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (is(Kind::kUndefined) || is(Kind::kNone)) return true;
  if (is(Kind::kText)) return as_text() == other.as_text();  // as if every text were interned
  if (object_ || other.object_) return object_ == other.object_;
  return plain_.integer == other.plain_.integer;
}

int Value::depth() const {
  if (is_list_like()) return static_cast<const ListObject*>(object_.get())->depth;
  if (is(Kind::kDict)) return static_cast<const DictObject*>(object_.get())->depth;
  if (is(Kind::kMethod)) return as_method().self.depth() + 1;
  return 0;
}

const char* Value::type_name() const {
  static constexpr const char* kNames[] = {
      "undefined", "None",      "bool", "int",       "float", "str",     "list",  "tuple",    "range",
      "dict_view", "generator", "dict", "namespace", "loop",  "counter", "macro", "function", "method"};
  return kNames[static_cast<size_t>(kind_)];
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, item] : pairs()) {
    if (name.is(Kind::kText) && name.as_text() == key) return &item;
  }
  return nullptr;
}

}  // namespace doppler::tmpl
