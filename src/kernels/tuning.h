// The choices of measurements on one device, instead of the tables': for an operation and a shape, a variant and values
// of its constants. Policy::tuning holds one; resolve() takes the variant from it and tunable() the constants, both
// only while the device and the lane still allow them. Made by `doppler tune` (bench/tuner.h), kept in a file by the
// native build (engine/tuning_file_native.h); a browser may hand in the text of one.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/caps.h"
#include "kernels/context.h"

namespace doppler::kernels {

struct TunedChoice {
  std::string variant;
  std::map<std::string, uint32_t, std::less<>> constants;  // those that differ from the table's
  // Seconds of a whole decode step, or of a row of a prefill chunk, of the model that was tuned: with this choice, and
  // with the one that it replaced.
  double seconds = 0, table_seconds = 0;
  bool operator==(const TunedChoice&) const = default;
};

struct TuningTable {
  std::map<std::pair<std::string, std::string>, TunedChoice> choices;  // by operation and shape
  // Decode steps of a submit that won for a model, by model_key().
  std::map<std::string, uint32_t> batch;
  // Models, by model_key(), whose decode layers were faster in one dispatch (kernels/persistent).
  std::set<std::string> persistent;

  const TunedChoice* find(std::string_view operation, std::string_view shape) const;
  bool operator==(const TuningTable&) const = default;
};

// The conditions of a table's measurements. It is of no use with anything else: another kernel text, another driver.
struct TuningKey {
  std::string adapter, driver, provider, backend;
  std::string wgsl;  // wgsl_digest()
  std::string lane, kv;
  bool operator==(const TuningKey&) const = default;
};
TuningKey tuning_key(const gpu::Caps& caps, const Policy& policy, std::string_view kv);
// 16 hexadecimal digits over the names and texts of all WGSL files, those of DOPPLER_WGSL_DIR first.
std::string wgsl_digest();
// 16 hexadecimal digits over all fields: the name of a cache file.
std::string key_digest(const TuningKey& key);

std::string tuning_text(const TuningKey& key, const TuningTable& table);  // JSON
// Errors, one sentence: not JSON, not a tuning file, of another format number, made with another key (which part is
// named), a field of the wrong type or beyond its bounds.
Result<TuningTable> parse_tuning(std::string_view text, const TuningKey& key, std::string_view file);

// The value of a constant of a chosen variant: `standard`, or what tuning found best, if it is still among the
// `alternatives`. Every call is kept in the Choice, so that the tuner knows what it may try.
uint32_t tunable(const Policy& policy, Choice& choice, std::string_view name, uint32_t standard,
                 std::vector<uint32_t> alternatives);

}  // namespace doppler::kernels
