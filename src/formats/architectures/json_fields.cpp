#include "formats/architectures/json_fields.h"

#include "base/json.h"

namespace doppler::formats {

Result<std::optional<uint32_t>> get_count(const Json& json, const char* key) {
  DP_TRY(const auto value, get_integer(json, key));
  if (!value) return std::optional<uint32_t>();
  if (*value < 0 || *value > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %lld; allowed is 0 to 2^32-1.", key,
                static_cast<long long>(*value));
  }
  return std::optional<uint32_t>(static_cast<uint32_t>(*value));
}

Result<uint32_t> required_count(const Json& json, const char* key) {
  DP_TRY(const auto value, get_count(json, key));
  if (!value) return fail(ErrorKind::kInvalidInput, "Field \"%s\" is missing in config.json.", key);
  return *value;
}

Result<double> number_or(const Json& json, const char* key, double otherwise) {
  DP_TRY(const auto value, get_number(json, key));
  return value.value_or(otherwise);
}

Result<bool> bool_or(const Json& json, const char* key, bool otherwise) {
  DP_TRY(const auto value, get_bool(json, key));
  return value.value_or(otherwise);
}

Result<std::vector<double>> get_numbers(const Json& json, const char* key) {
  std::vector<double> out;
  const Json* list = find(json, key);
  if (!list || list->is_null()) return out;
  if (!list->is_array())
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a list of numbers.", key);
  for (const Json& item : *list) {
    if (!item.is_number())
      return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a list of numbers.", key);
    out.push_back(item.get<double>());
  }
  return out;
}

}  // namespace doppler::formats
