// JSON documents: the value, parsing, typed access, text. Objects keep the order of their members.
// nlohmann/json reads the text, in json_parse.cpp; the value is our own class, because most sources had to
// instantiate the templates of nlohmann's.
// The core is built without exceptions: parse with parse_json() and read with the get_* functions below. A member
// function that is called on a value of another type ends the program.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler {

class JsonItem;

class Json {
 public:
  enum class Type : uint8_t { kNull, kBool, kInteger, kUnsigned, kReal, kString, kArray, kObject };
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order of the text; the keys differ

  Json() noexcept = default;
  Json(std::nullptr_t) noexcept {}
  Json(const Json& other);
  Json(Json&& other) noexcept : type_(other.type_), held_(other.held_) { other.type_ = Type::kNull; }
  Json& operator=(Json other) noexcept;
  ~Json() {
    if (type_ >= Type::kString) release();
  }

  Json(std::same_as<bool> auto value) noexcept : type_(Type::kBool) { held_.boolean = value; }
  Json(std::signed_integral auto value) noexcept : type_(Type::kInteger) { held_.integer = value; }
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) noexcept : type_(Type::kUnsigned) {
    held_.natural = value;
  }
  Json(double value) noexcept : type_(Type::kReal) { held_.real = value; }
  Json(float value) noexcept : Json(static_cast<double>(value)) {}
  Json(const char* text) : Json(std::string_view(text)) {}
  Json(std::string_view text);
  Json(std::string text);
  Json(Array items);
  Json(Object members);
  template <typename T>
  Json(const std::vector<T>& items) : Json(array_of(items)) {}
  template <typename T, size_t N>
  Json(std::span<T, N> items) : Json(array_of(items)) {}
  template <typename T, typename Less>
  Json(const std::map<std::string, T, Less>& members);

  // Makes an object if each item is a pair whose first value is a text: {{"a", 1}, {"b", {1, 2}}}. Makes an array
  // otherwise.
  Json(std::initializer_list<JsonItem> items);
  static Json array(std::initializer_list<JsonItem> items = {});
  static Json object(std::initializer_list<JsonItem> items = {});

  Type type() const noexcept { return type_; }
  const char* type_name() const noexcept;  // "null", "boolean", "number", "string", "array", "object"
  bool is_null() const noexcept { return type_ == Type::kNull; }
  bool is_boolean() const noexcept { return type_ == Type::kBool; }
  bool is_number() const noexcept { return type_ >= Type::kInteger && type_ <= Type::kReal; }
  bool is_number_integer() const noexcept { return type_ == Type::kInteger || type_ == Type::kUnsigned; }
  bool is_number_unsigned() const noexcept {
    return type_ == Type::kUnsigned;
  }  // as parsed: no sign, no point
  bool is_number_float() const noexcept { return type_ == Type::kReal; }
  bool is_string() const noexcept { return type_ == Type::kString; }
  bool is_array() const noexcept { return type_ == Type::kArray; }
  bool is_object() const noexcept { return type_ == Type::kObject; }
  bool is_structured() const noexcept { return type_ >= Type::kArray; }

  // T is bool, a number (converted from whichever kind the value has), std::string, or a std::vector of such types.
  template <typename T>
  T get() const;
  const std::string& text() const;

  size_t size() const noexcept;  // of items or members; 0 if null, 1 for other values
  bool empty() const noexcept { return size() == 0; }

  // Arrays. Null becomes an array with the first push_back. Iterating over a value of another type visits nothing.
  const Json* begin() const noexcept { return is_array() ? held_.array->data() : nullptr; }
  const Json* end() const noexcept {
    return is_array() ? held_.array->data() + held_.array->size() : nullptr;
  }
  Json* begin() noexcept { return is_array() ? held_.array->data() : nullptr; }
  Json* end() noexcept { return is_array() ? held_.array->data() + held_.array->size() : nullptr; }
  const Json& operator[](std::integral auto index) const { return at_index(static_cast<size_t>(index)); }
  Json& operator[](std::integral auto index) {
    return const_cast<Json&>(at_index(static_cast<size_t>(index)));
  }
  const Json& front() const { return at_index(0); }
  const Json& back() const { return at_index(size() - 1); }
  Json& back() { return const_cast<Json&>(at_index(size() - 1)); }
  void push_back(Json item);

  // Objects. Null becomes an object when a member is written.
  const Object& items() const noexcept;  // empty if this is no object
  bool contains(std::string_view key) const noexcept { return find_member(key) != nullptr; }
  const Json* find_member(std::string_view key) const noexcept;  // null if this is no object or lacks it
  const Json& operator[](std::string_view key) const;            // a member that is there
  Json& operator[](std::string_view key);                        // added as null if it is not there
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  void erase(std::string_view key);
  void update(const Json& members);  // sets each member

  void clear() noexcept;  // an empty array, object or text; other values stay

  // Numbers are compared by value, objects member by member in their order.
  friend bool operator==(const Json& a, const Json& b) noexcept;

 private:
  template <typename Range>
  static Array array_of(const Range& items) {
    return Array(items.begin(), items.end());
  }
  void release() noexcept;
  const Json& at_index(size_t index) const;
  bool as_bool() const;
  int64_t as_integer() const;
  uint64_t as_natural() const;
  double as_real() const;

  Type type_ = Type::kNull;
  union Held {
    bool boolean;
    int64_t integer;
    uint64_t natural;
    double real;
    std::string* text;
    Array* array;
    Object* object;
  } held_{.natural = 0};
};

struct Json::Member {
  std::string key;
  Json value;

  friend bool operator==(const Member& a, const Member& b) = default;
};

// An item between braces. It is moved out of the list, which std::initializer_list<Json> does not allow.
class JsonItem {
 public:
  JsonItem(Json value) noexcept : value_(std::move(value)) {}
  JsonItem(std::initializer_list<JsonItem> items) : value_(items) {}
  template <typename T>
    requires std::constructible_from<Json, T&&> && (!std::same_as<std::remove_cvref_t<T>, Json>) &&
             (!std::same_as<std::remove_cvref_t<T>, JsonItem>)
  JsonItem(T&& value) : value_(std::forward<T>(value)) {}

  Json take() const noexcept { return std::move(value_); }
  const Json& look() const noexcept { return value_; }

 private:
  mutable Json value_;
};

template <typename T, typename Less>
Json::Json(const std::map<std::string, T, Less>& members) : Json(Object{}) {
  for (const auto& [key, value] : members) held_.object->push_back({key, value});
}

template <typename T>
T Json::get() const {
  if constexpr (std::same_as<T, bool>)
    return as_bool();
  else if constexpr (std::floating_point<T>)
    return static_cast<T>(as_real());
  else if constexpr (std::signed_integral<T>)
    return static_cast<T>(as_integer());
  else if constexpr (std::unsigned_integral<T>)
    return static_cast<T>(as_natural());
  else if constexpr (std::same_as<T, std::string>)
    return text();
  else {
    T items;
    for (const Json& item : *this) items.push_back(item.get<typename T::value_type>());
    return items;
  }
}

// Refuses text that is not JSON, deeper than max_depth (a hostile file must not exhaust the stack) or not UTF-8.
// `what` names the document in the error: "config.json". If members have one key, the last one stays.
Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth = 64);

// Python's json writes infinite numbers as the bare word Infinity, which JSON does not have: the text with 1e308 in
// their place. Words within strings stay.
std::string without_infinities(std::string_view text);

// The member, or null if `object` is no object or lacks it.
inline const Json* find(const Json& object, std::string_view key) { return object.find_member(key); }

// Empty when absent or null; an error when present with another type.
Result<std::optional<std::string>> get_string(const Json& object, std::string_view key);
Result<std::optional<double>> get_number(const Json& object, std::string_view key);
Result<std::optional<int64_t>> get_integer(const Json& object, std::string_view key);
Result<std::optional<bool>> get_bool(const Json& object, std::string_view key);

// Compact text, or lines indented by `indent` blanks a level. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& value, int indent = -1);

}  // namespace doppler
