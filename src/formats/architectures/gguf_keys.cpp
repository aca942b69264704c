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

Result<std::vector<uint32_t>> GgufKeys::counts(const char* key) const {
  const GgufValue* value = gguf_.find(prefix_ + key);
  std::vector<uint32_t> out;
  if (!value) return out;
  if (!value->is_array()) {
    DP_TRY(const uint32_t one, required(key));
    return std::vector<uint32_t>{one};
  }
  DP_TRY(const std::vector<double> list, numbers(key));
  for (const double number : list) {
    if (!(number >= 0) || number > UINT32_MAX) {
      return fail(ErrorKind::kInvalidInput, "Key \"%s%s\" has %g; allowed is 0 to 2^32-1.", prefix_.c_str(),
                  key, number);
    }
    out.push_back(static_cast<uint32_t>(number));
  }
  return out;
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

Result<std::vector<double>> GgufKeys::global_numbers(const char* key) const {
  DP_TRY(auto value, gguf_.get_numbers(key));
  return std::move(value).value_or(std::vector<double>());
}

std::vector<uint8_t> GgufKeys::flags(const char* key) const {
  const GgufValue* value = gguf_.find(prefix_ + key);
  std::vector<uint8_t> out;
  if (!value || !value->is_array()) return out;
  for (uint64_t i = 0; i < value->count(); ++i) {
    const auto truth = value->boolean(i);
    out.push_back(truth ? *truth : value->number(i).value_or(0) != 0);
  }
  return out;
}

}  // namespace doppler::formats
