// The value of a JSON document. The contract is json.h.
#include "base/json.h"

#include <algorithm>
#include <cstdlib>

namespace doppler {
namespace {

constinit const Json::Object kNoMembers{};

// Reached only by a call that json.h forbids.
void require(bool right_type) {
  if (!right_type) std::abort();
}

bool is_pair(const Json& value) { return value.is_array() && value.size() == 2 && value[0].is_string(); }

}  // namespace

Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) : type_(Type::kString) { held_.text = new std::string(std::move(text)); }
Json::Json(Array items) : type_(Type::kArray) { held_.array = new Array(std::move(items)); }
Json::Json(Object members) : type_(Type::kObject) { held_.object = new Object(std::move(members)); }

Json::Json(const Json& other) : type_(other.type_), held_(other.held_) {
  switch (type_) {
    case Type::kString:
      held_.text = new std::string(*other.held_.text);
      break;
    case Type::kArray:
      held_.array = new Array(*other.held_.array);
      break;
    case Type::kObject:
      held_.object = new Object(*other.held_.object);
      break;
    default:
      break;
  }
}

Json& Json::operator=(Json other) noexcept {
  std::swap(type_, other.type_);
  std::swap(held_, other.held_);
  return *this;
}

void Json::release() noexcept {
  if (type_ == Type::kString)
    delete held_.text;
  else if (type_ == Type::kArray)
    delete held_.array;
  else
    delete held_.object;
}

Json::Json(std::initializer_list<JsonItem> items) {
  const bool is_object =
      std::ranges::all_of(items, [](const JsonItem& item) { return is_pair(item.look()); });
  *this = is_object ? object(items) : array(items);
}

Json Json::array(std::initializer_list<JsonItem> items) {
  Array out;
  out.reserve(items.size());
  for (const JsonItem& item : items) out.push_back(item.take());
  return out;
}

Json Json::object(std::initializer_list<JsonItem> items) {
  Json out(Object{});
  for (const JsonItem& item : items) {
    Json pair = item.take();
    require(is_pair(pair));
    out[std::string_view(pair[0].text())] = std::move(pair[1]);
  }
  return out;
}

const char* Json::type_name() const noexcept {
  switch (type_) {
    case Type::kNull:
      return "null";
    case Type::kBool:
      return "boolean";
    case Type::kString:
      return "string";
    case Type::kArray:
      return "array";
    case Type::kObject:
      return "object";
    default:
      return "number";
  }
}

const std::string& Json::text() const {
  require(is_string());
  return *held_.text;
}

bool Json::as_bool() const {
  require(is_boolean());
  return held_.boolean;
}

int64_t Json::as_integer() const {
  require(is_number());
  return is_number_float() ? static_cast<int64_t>(held_.real) : held_.integer;
}

uint64_t Json::as_natural() const {
  require(is_number());
  return is_number_float() ? static_cast<uint64_t>(held_.real) : held_.natural;
}

double Json::as_real() const {
  require(is_number());
  if (is_number_float()) return held_.real;
  return is_number_unsigned() ? static_cast<double>(held_.natural) : static_cast<double>(held_.integer);
}

size_t Json::size() const noexcept {
  if (is_array()) return held_.array->size();
  if (is_object()) return held_.object->size();
  return is_null() ? 0 : 1;
}

const Json& Json::at_index(size_t index) const {
  require(is_array() && index < held_.array->size());
  return (*held_.array)[index];
}

void Json::push_back(Json item) {
  if (is_null()) *this = Json(Array{});
  require(is_array());
  held_.array->push_back(std::move(item));
}

const Json::Object& Json::items() const noexcept { return is_object() ? *held_.object : kNoMembers; }

const Json* Json::find_member(std::string_view key) const noexcept {
  const auto found = std::ranges::find(items(), key, &Member::key);
  return found == items().end() ? nullptr : &found->value;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* found = find_member(key);
  require(found != nullptr);
  return *found;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = Json(Object{});
  require(is_object());
  if (const Json* found = find_member(key)) return const_cast<Json&>(*found);
  held_.object->push_back({std::string(key), Json()});
  return held_.object->back().value;
}

void Json::erase(std::string_view key) {
  require(is_object());
  std::erase_if(*held_.object, [&](const Member& member) { return member.key == key; });
}

void Json::update(const Json& members) {
  for (const auto& [key, value] : members.items()) (*this)[key] = value;
}

void Json::clear() noexcept {
  if (is_array())
    held_.array->clear();
  else if (is_object())
    held_.object->clear();
  else if (is_string())
    held_.text->clear();
}

bool operator==(const Json& a, const Json& b) noexcept {
  using Type = Json::Type;
  if (a.is_number() && b.is_number()) {
    if (a.type_ == Type::kReal || b.type_ == Type::kReal) return a.as_real() == b.as_real();
    // A negative value and one above 2^63 may have the same bits.
    const bool both_fit = a.type_ == b.type_ || (a.held_.integer >= 0 && b.held_.integer >= 0);
    return both_fit && a.held_.integer == b.held_.integer;
  }
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case Type::kBool:
      return a.held_.boolean == b.held_.boolean;
    case Type::kString:
      return *a.held_.text == *b.held_.text;
    case Type::kArray:
      return *a.held_.array == *b.held_.array;
    case Type::kObject:
      return *a.held_.object == *b.held_.object;
    default:
      return true;
  }
}

}  // namespace doppler
