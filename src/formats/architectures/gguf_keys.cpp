#include "formats/architectures/gguf_keys.h"

namespace doppler::formats {

Result<std::optional<uint32_t>> GgufKeys::count(const char* key) const {
  DP_TRY(const auto value, gguf_.get_integer(prefix_ + key));
  if (!value) return std::optional<uint32_t>();
  if (*value < 0 || *value > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "Key \"%s%s\" is %lld; allowed is 0 to 2^32-1.", prefix_.c_str(),
                key, static_cast<long long>(*value));
  }
  return std::optional<uint32_t>(static_cast<uint32_t>(*value));
}

Result<uint32_t> GgufKeys::required(const char* key) const {
  DP_TRY(const auto value, count(key));
  if (!value) return fail(ErrorKind::kInvalidInput, "Key \"%s%s\" is missing.", prefix_.c_str(), key);
  return *value;
}

Result<double> GgufKeys::number(const char* key, double otherwise) const {
  DP_TRY(const auto value, gguf_.get_number(prefix_ + key));
  return value.value_or(otherwise);
}

Result<bool> GgufKeys::truth(const char* key, bool otherwise) const {
  DP_TRY(const auto value, gguf_.get_bool(prefix_ + key));
  return value.value_or(otherwise);
}

Result<std::string> GgufKeys::text(const char* key) const {
  DP_TRY(const auto value, gguf_.get_string(prefix_ + key));
  return value.value_or(std::string());
}

Result<std::vector<double>> GgufKeys::numbers(const char* key) const {
  DP_TRY(auto value, gguf_.get_numbers(prefix_ + key));
  return std::move(value).value_or(std::vector<double>());
}

}  // namespace doppler::formats
