// Reading the members of one JSON object of a manifest: each must be there, null only if that means "off", and members
// that were not read are kept and reported. Only manifest_parse.cpp uses this.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/sha256.h"

namespace doppler::formats {

class RdrrMembers {
 public:
  // `path` is "" for the manifest itself, else "tensors[3]".
  static Result<RdrrMembers> of(const Json& value, std::string path, std::string_view file) {
    if (value.is_object()) return RdrrMembers(value, std::move(path), file);
    return fail(ErrorKind::kInvalidInput, "%s: %s must be an object, but it is %s.",
                std::string(file).c_str(), path.empty() ? "the document" : ("\"" + path + "\"").c_str(),
                value.type_name());
  }

  bool has(std::string_view key) const { return find(object_, key) != nullptr; }
  std::string path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  // The member; null stands for a null in the file.
  Result<const Json*> member(std::string_view key) {
    const Json* value = find(object_, key);
    if (!value) {
      return fail(ErrorKind::kInvalidInput, "%s: \"%s\" is missing (null would mean off).", file_.c_str(),
                  path_of(key).c_str());
    }
    asked_.emplace_back(key);
    return value->is_null() ? nullptr : value;
  }
  Result<const Json*> required(std::string_view key, const char* wanted, bool (Json::*is)() const noexcept) {
    DP_TRY(const Json* const value, member(key));
    if (value && (value->*is)()) return value;
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" must be %s, but it is %s.", file_.c_str(),
                path_of(key).c_str(), wanted, value ? value->type_name() : "null");
  }
  Result<const Json*> array(std::string_view key) { return required(key, "an array", &Json::is_array); }

  Result<std::string> text(std::string_view key) {
    DP_TRY(const Json* const value, required(key, "a string", &Json::is_string));
    return value->text();
  }
  // Empty for null.
  Result<std::string> text_or_null(std::string_view key) {
    DP_TRY(const Json* const value, member(key));
    if (!value) return std::string();
    return text(key);
  }
  Result<uint64_t> count(std::string_view key, uint64_t most) {
    DP_TRY(const Json* const value, required(key, "a whole number", &Json::is_number));
    return whole(*value, path_of(key), most);
  }
  Result<uint64_t> whole(const Json& value, const std::string& path, uint64_t most) const {
    if (value.is_number_unsigned()) {
      const auto number = value.get<uint64_t>();
      if (number <= most) return number;
    }
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" must be a whole number from 0 to %llu.", file_.c_str(),
                path.c_str(), static_cast<unsigned long long>(most));
  }
  Result<double> number(std::string_view key) {
    DP_TRY(const Json* const value, required(key, "a number", &Json::is_number));
    return value->get<double>();
  }
  Result<Sha256> digest(std::string_view key) {
    DP_TRY(const std::string text_of_it, text(key));
    if (const auto digest = sha256_from_hex(text_of_it)) return *digest;
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" must be 64 lower-case hexadecimal digits.",
                file_.c_str(), path_of(key).c_str());
  }
  // One of `names`, in their order.
  template <size_t N>
  Result<size_t> choice(std::string_view key, const char* const (&names)[N]) {
    DP_TRY(const std::string given, text(key));
    std::string allowed;
    for (size_t i = 0; i < N; ++i) {
      if (given == names[i]) return i;
      allowed += (i == 0 ? "" : i + 1 == N ? " and " : ", ") + std::string(names[i]);
    }
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" is \"%s\"; allowed are %s.", file_.c_str(),
                path_of(key).c_str(), printable(given).c_str(), allowed.c_str());
  }

  // The members that were not read: an object, or null if there are none.
  Json rest(std::vector<std::string>& unknown) const {
    Json out;
    for (const auto& [key, value] : object_.items()) {
      bool known = false;
      for (const std::string& asked : asked_) known = known || asked == key;
      if (known) continue;
      out[key] = value;
      unknown.push_back(printable(path_of(key), 200));
    }
    return out;
  }

 private:
  RdrrMembers(const Json& object, std::string path, std::string_view file)
      : object_(object), path_(std::move(path)), file_(file) {}

  const Json& object_;
  std::string path_;
  std::string file_;
  std::vector<std::string> asked_;
};

}  // namespace doppler::formats
