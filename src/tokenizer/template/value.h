// The values a chat template computes with: Python's, as far as templates use them. Values are immutable and
// cheap to copy (text, lists and dicts are shared); only a namespace can change, and the Machine owns those,
// so no cycle of owners can form. Integers have 64 bits; overflow is an error where Python would grow.
// Read next: machine.h (making values within the bounds), operators.h (what can be done with them).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doppler::tmpl {

enum class Kind : uint8_t {
  kUndefined,  // prints "", is empty and false; using it otherwise is an error
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,  // UTF-8; lengths and indices count code points
  kList,
  kTuple,
  kRange,
  kView,       // dict.items() and the like: has a length, cannot be indexed
  kGenerator,  // map, select, ...: always true, no length
  kDict,       // keeps insertion order
  kNamespace,
  kLoop,
  kCounter,  // a joiner or cycler
  kMacro,
  kFunction,  // a global such as range
  kMethod,    // a method bound to its value
};

class Value;
using Values = std::vector<Value>;
using Pairs = std::vector<std::pair<Value, Value>>;

struct ListObject;
struct DictObject;
struct MethodObject;
struct Namespace;     // machine.h
struct LoopState;     // machine.h
struct CounterState;  // machine.h
struct MacroState;    // interpreter.h

class Value {
 public:
  Value() = default;  // undefined, without a hint
  // `hint` is the sentence (without full stop) an error tells when the value is used.
  static Value undefined(std::string hint);
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value number(double value);
  // These four do not count against the bounds: in rendering use Machine's makers.
  static Value text(std::string value);
  static Value list(Values items, Kind kind = Kind::kList);
  static Value dict(Pairs items);
  static Value method(Value self, std::string_view name);
  static Value function(int id);
  static Value of(Namespace* state);
  static Value of(LoopState* state);
  static Value of(CounterState* state);
  static Value group(Value key,
                     Value items);  // of groupby: a tuple whose parts have the names grouper and list
  static Value of(MacroState* state);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_list_like() const { return kind_ >= Kind::kList && kind_ <= Kind::kGenerator; }
  bool is_number() const { return kind_ >= Kind::kBool && kind_ <= Kind::kFloat; }
  bool is_integral() const { return kind_ == Kind::kBool || kind_ == Kind::kInt; }

  // Each may be called on its own kind only.
  bool as_bool() const { return plain_.integer != 0; }
  int64_t as_int() const { return plain_.integer; }  // also of a bool
  double as_double() const { return is(Kind::kFloat) ? plain_.number : static_cast<double>(plain_.integer); }
  const std::string& as_text() const { return *static_cast<const std::string*>(object_.get()); }
  const Values& items() const;
  const Pairs& pairs() const;
  const MethodObject& as_method() const;
  Namespace* as_namespace() const { return static_cast<Namespace*>(plain_.pointer); }
  LoopState* as_loop() const { return static_cast<LoopState*>(plain_.pointer); }
  CounterState* as_counter() const { return static_cast<CounterState*>(plain_.pointer); }
  bool is_group() const { return is(Kind::kTuple) && plain_.integer == 1; }
  MacroState* as_macro() const { return static_cast<MacroState*>(plain_.pointer); }
  int as_function() const { return static_cast<int>(plain_.integer); }
  std::string hint() const;

  bool truthy() const;
  bool same_as(const Value& other) const;  // Python's `is`
  int depth() const;                       // 0 for scalars, 1 for a list of scalars
  const char* type_name() const;           // Python's: "str", "dict", ...
  // A dict's value for a text key, or null.
  const Value* find(std::string_view key) const;

 private:
  union Plain {
    int64_t integer;
    double number;
    void* pointer;
  };
  Plain plain_ = {0};
  std::shared_ptr<const void> object_;
  Kind kind_ = Kind::kUndefined;
};

struct ListObject {
  Values items;
  int depth;
};

struct DictObject {
  Pairs pairs;
  int depth;
};

struct MethodObject {
  Value self;
  std::string name;
};

}  // namespace doppler::tmpl
