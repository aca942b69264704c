// tuning.h: the text of a tuning file, and its checks. It needs nothing of the GPU, so that it is fuzzed by itself.
#include "kernels/tuning_text.h"

#include "base/json.h"
#include "kernels/text_digest.h"

namespace doppler::kernels {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kMostEntries = 10'000;  // of a file; a model has about twenty
constexpr size_t kMostNameBytes = 256;   // of an operation, shape, variant or constant
constexpr int64_t kMostConstant = 1 << 20;
constexpr int64_t kMostBatch = 256;
constexpr std::string_view kKind = "doppler tuning";

struct KeyField {
  const char* name;
  std::string TuningKey::* member;
};
constexpr KeyField kKeyFields[] = {{"adapter", &TuningKey::adapter},
                                   {"driver", &TuningKey::driver},
                                   {"provider", &TuningKey::provider},
                                   {"backend", &TuningKey::backend},
                                   {"wgsl", &TuningKey::wgsl},
                                   {"lane", &TuningKey::lane},
                                   {"kv", &TuningKey::kv}};

Result<std::string> name_in(const Json& object, const char* member) {
  DP_TRY(std::optional<std::string> text, get_string(object, member));
  if (!text || text->empty() || text->size() > kMostNameBytes) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be text of 1 to %zu bytes.", member,
                kMostNameBytes);
  }
  return std::move(*text);
}

Result<uint32_t> count_in(const Json& object, std::string_view member, int64_t most) {
  DP_TRY(const std::optional<int64_t> number, get_integer(object, member));
  if (!number || *number < 1 || *number > most) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a whole number from 1 to %lld.",
                printable(member).c_str(), static_cast<long long>(most));
  }
  return static_cast<uint32_t>(*number);
}

Result<void> check_key(const Json& file, const TuningKey& key) {
  const Json* found = find(file, "key");
  if (!found) return fail(ErrorKind::kInvalidInput, "It has no key.");
  for (const KeyField& field : kKeyFields) {
    DP_TRY(const std::optional<std::string> value, get_string(*found, field.name));
    if (value.value_or("") == key.*field.member) continue;
    return fail(ErrorKind::kInvalidInput, "It was made with %s \"%s\", but this is \"%s\".", field.name,
                printable(value.value_or("")).c_str(), printable(key.*field.member).c_str());
  }
  return {};
}

// The array, checked for its length; empty when absent.
Result<const Json*> entries_of(const Json& file, const char* member) {
  static const Json none = Json::array();
  const Json* entries = find(file, member);
  if (!entries) return &none;
  if (!entries->is_array() || entries->size() > kMostEntries) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be an array of at most %zu.", member,
                kMostEntries);
  }
  return entries;
}

Result<void> read_choice(const Json& entry, TuningTable& table) {
  TunedChoice choice;
  DP_TRY(std::string operation, name_in(entry, "operation"));
  DP_TRY(std::string shape, name_in(entry, "shape"));
  DP_TRY(choice.variant, name_in(entry, "variant"));
  if (const Json* constants = find(entry, "constants")) {
    if (!constants->is_object() || constants->size() > kMostNameBytes) {
      return fail(ErrorKind::kInvalidInput, "Field \"constants\" must be an object of numbers.");
    }
    for (const auto& item : constants->items()) {
      DP_TRY(choice.constants[item.key], count_in(*constants, item.key, kMostConstant));
    }
  }
  DP_TRY(const std::optional<double> seconds, get_number(entry, "seconds"));
  DP_TRY(const std::optional<double> table_seconds, get_number(entry, "table_seconds"));
  choice.seconds = seconds.value_or(0);
  choice.table_seconds = table_seconds.value_or(0);
  table.choices[{std::move(operation), std::move(shape)}] = std::move(choice);
  return {};
}

Result<Json> read_file(std::string_view text) {
  DP_TRY(Json file, parse_json(text, "It", /*max_depth=*/6));
  DP_TRY(const std::optional<std::string> kind, get_string(file, "kind"));
  DP_TRY(const std::optional<int64_t> format, get_integer(file, "format"));
  if (kind == kKind && format == kFormat) return file;
  return fail(ErrorKind::kInvalidInput, "It is no tuning of format %d.", static_cast<int>(kFormat));
}

Result<TuningKey> read_key(std::string_view text) {
  DP_TRY(const Json file, read_file(text));
  const Json* found = find(file, "key");
  if (!found) return fail(ErrorKind::kInvalidInput, "It has no key.");
  TuningKey key;
  for (const KeyField& field : kKeyFields) {
    DP_TRY(key.*field.member, name_in(*found, field.name));
  }
  return key;
}

Unexpected not_used(const Error& error, std::string_view file) {
  return fail(ErrorKind::kInvalidInput, "The tuning in %s is not used: %s", printable(file).c_str(),
              error.sentence().c_str());
}

Result<TuningTable> read_table(std::string_view text, const TuningKey& key) {
  DP_TRY(const Json file, read_file(text));
  DP_CHECK(check_key(file, key));
  TuningTable table;
  DP_TRY(const Json* const choices, entries_of(file, "choices"));
  for (const Json& entry : *choices) DP_CHECK(read_choice(entry, table));
  DP_TRY(const Json* const cadence, entries_of(file, "cadence"));
  for (const Json& entry : *cadence) {
    DP_TRY(std::string model, name_in(entry, "model"));
    DP_TRY(table.batch[std::move(model)], count_in(entry, "batch", kMostBatch));
  }
  DP_TRY(const Json* const persistent, entries_of(file, "persistent"));
  for (const Json& entry : *persistent) {
    DP_TRY(std::string model, name_in(entry, "model"));
    table.persistent.insert(std::move(model));
  }
  return table;
}

}  // namespace

std::string key_digest(const TuningKey& key) {
  TextDigest digest;
  for (const KeyField& field : kKeyFields) digest.add(key.*field.member);
  return digest.text();
}

std::string tuning_text(const TuningKey& key, const TuningTable& table) {
  Json file = {{"kind", kKind}, {"format", kFormat}};
  for (const KeyField& field : kKeyFields) file["key"][field.name] = key.*field.member;
  Json choices = Json::array(), cadence = Json::array(), persistent = Json::array();
  for (const auto& [name, choice] : table.choices) {
    Json entry = {{"operation", name.first},
                  {"shape", name.second},
                  {"variant", choice.variant},
                  {"seconds", choice.seconds},
                  {"table_seconds", choice.table_seconds}};
    for (const auto& [constant, value] : choice.constants) entry["constants"][constant] = value;
    choices.push_back(std::move(entry));
  }
  for (const auto& [model, batch] : table.batch) cadence.push_back({{"model", model}, {"batch", batch}});
  for (const std::string& model : table.persistent) persistent.push_back({{"model", model}});
  file["choices"] = std::move(choices);
  file["cadence"] = std::move(cadence);
  file["persistent"] = std::move(persistent);
  return to_text(file, 2) + "\n";
}

Result<TuningKey> tuning_key_of(std::string_view text, std::string_view file) {
  auto key = read_key(text);
  if (key) return key;
  return not_used(key.error(), file);
}

Result<TuningTable> parse_tuning(std::string_view text, const TuningKey& key, std::string_view file) {
  auto table = read_table(text, key);
  if (table) return table;
  return not_used(table.error(), file);
}

}  // namespace doppler::kernels
