// Presets: named files of flags, for every verb that runs a model. Those of src/cli/presets/ are built in; a person's
// own lie in user_preset_dir(). docs/howto/run.md describes the files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/harness.h"
#include "bench/origin.h"

namespace doppler::cli {

class Args;

struct Preset {
  std::string name, summary;
  std::vector<bench::Intent> intents;  // that it may serve
  std::vector<std::pair<std::string, std::string>>
      flags;  // name without dashes, value; "" for those that take none
};

// The changes that --preset made to a verb's flags.
struct PresetUse {
  bench::UsedPreset used;
  std::vector<bench::Intent> intents;
};

// --preset NAME. Flags on the line count more; of the preset's, those that the verb does not have are left out.
void add_preset_flag(Args& args, PresetUse& use);

// `text` is a preset's file. Errors: no such JSON; a flag that no verb with presets has.
Result<Preset> parse_preset(std::string_view name, std::string_view text);
// "presets" in user_folder(UserFolder::kConfig). Empty: there is no such folder.
std::string user_preset_dir();

}  // namespace doppler::cli
