#include "cli/presets.h"

#include <algorithm>
#include <cstdlib>

#include "base/folders.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own_folders_native.h"
#include "cli/args.h"
#include "cli/builtin_presets.h"
#include "cli/common.h"
#include "cli/generate_flags.h"

namespace doppler::cli {
namespace {

constexpr std::string_view kEnding = ".json";

// Flags of all verbs with presets: an unknown name is a typing error, not a flag to leave out.
bool is_known_flag(std::string_view name) {
  if (name == "preset") return false;
  ModelFlags model;
  GenerateFlags generate;
  Args all("", "");
  add_load_flags(all, model);
  add_generate_flags(all, generate);
  return all.has(name) || name == "parallel" || name == "sequences";
}

Result<std::string> flag_value(std::string_view preset, const std::string& flag, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return to_text(value);
  if (value.is_boolean() && value.get<bool>()) return std::string();
  return fail(ErrorKind::kInvalidInput,
              "Preset %s gives flag \"%s\" the value %s; allowed are a text, a number, and true for a flag "
              "that takes none.",
              printable(preset).c_str(), printable(flag).c_str(), printable(to_text(value)).c_str());
}

std::string spelled(const std::pair<std::string, std::string>& flag) {
  return "--" + flag.first + (flag.second.empty() ? "" : "=" + flag.second);
}

// Names of the person's own, in order.
std::vector<std::string> own_names() {
  std::vector<std::string> names;
  list_folder(user_preset_dir(), names);
  std::erase_if(names, [](const std::string& name) {
    return name.size() <= kEnding.size() || !name.ends_with(kEnding);
  });
  for (std::string& name : names) name.resize(name.size() - kEnding.size());
  std::ranges::sort(names);
  return names;
}

const BuiltinPreset* find_builtin(std::string_view name) {
  const auto it = std::ranges::find(kBuiltinPresets, name, &BuiltinPreset::name);
  return it == std::end(kBuiltinPresets) ? nullptr : it;
}

Result<Preset> find_preset(std::string_view name) {
  const std::vector<std::string> own = own_names();
  const bool is_own = std::ranges::count(own, name) > 0;
  const std::string path = user_preset_dir() + "/" + std::string(name) + std::string(kEnding);
  if (const BuiltinPreset* builtin = find_builtin(name)) {
    if (!is_own) return parse_preset(name, builtin->text);
    return fail(ErrorKind::kInvalidInput, "Preset %s is built in; %s needs another name.",
                printable(name).c_str(), path.c_str());
  }
  if (is_own) {
    DP_TRY(const std::string text, read_text_file(path));
    return parse_preset(name, text);
  }
  std::vector<std::string> names = own;
  for (const BuiltinPreset& builtin : kBuiltinPresets) names.emplace_back(builtin.name);
  const auto suggestion = nearest(name, names);
  return fail(ErrorKind::kInvalidInput, "There is no preset \"%s\"%s.", printable(name).c_str(),
              suggestion ? (" (did you mean " + *suggestion + "?)").c_str()
                         : "; --preset list names those there are");
}

Result<std::string> list_text() {
  std::string out;
  std::vector<std::string> names;
  for (const BuiltinPreset& builtin : kBuiltinPresets) names.emplace_back(builtin.name);
  for (std::string& name : own_names()) {
    if (!find_builtin(name)) names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    DP_TRY(const Preset preset, find_preset(name));
    out += preset.name + ": " + printable(preset.summary, 200) + "\n ";
    for (const auto& flag : preset.flags) out += " " + spelled(flag);
    out += "\n  serves";
    for (const bench::Intent intent : preset.intents) out += std::string(" ") + bench::intent_name(intent);
    out += "\n";
  }
  return out + "Your own: NAME.json in " + user_preset_dir() + ".\n";
}

Result<void> use_preset(Args& args, std::string_view name, PresetUse& use) {
  if (name == "list") {
    DP_TRY(std::string text, list_text());
    args.answer_with(std::move(text));
    return {};
  }
  if (!use.used.name.empty()) {
    return fail(ErrorKind::kInvalidInput, "Presets %s and %s were given; one is allowed.",
                use.used.name.c_str(), printable(name).c_str());
  }
  DP_TRY(const Preset preset, find_preset(name));
  use.used.name = preset.name;
  use.intents = preset.intents;
  for (const auto& flag : preset.flags) {
    if (!args.has(flag.first)) {
      use.used.left_out.push_back(spelled(flag));
      continue;
    }
    DP_CHECK_WHILE(args.give(flag.first, flag.second), "using preset %s", preset.name.c_str());
    use.used.flags.push_back(spelled(flag));
  }
  for (const std::string& flag : use.used.left_out)
    log(LogLevel::kInfo, "Preset %s is used without %s, which this verb does not have.", preset.name.c_str(),
        flag.c_str());
  return {};
}

}  // namespace

std::string user_preset_dir() {
  const std::string folder = user_folder(UserFolder::kConfig);
  return folder.empty() ? folder : folder + "/presets";
}

Result<Preset> parse_preset(std::string_view name, std::string_view text) {
  const std::string shown = "preset " + printable(name);
  DP_TRY(const Json file, parse_json(text, shown));
  Preset preset{.name = std::string(name), .summary = {}, .intents = {}, .flags = {}};
  DP_TRY(const auto summary, get_string(file, "summary"));
  const Json* intents = find(file, "intents");
  const Json* flags = find(file, "flags");
  if (!summary || !intents || !intents->is_array() || !flags || !flags->is_object() || file.size() != 3) {
    return fail(ErrorKind::kInvalidInput,
                "Preset %s is not {\"summary\": text, \"intents\": [...], \"flags\": {...}}.",
                printable(name).c_str());
  }
  preset.summary = *summary;
  for (const auto intent : {bench::Intent::kCalibrate, bench::Intent::kInvestigate}) {
    if (std::ranges::count(*intents, Json(bench::intent_name(intent))) > 0) preset.intents.push_back(intent);
  }
  if (preset.intents.empty() || preset.intents.size() != intents->size()) {
    return fail(ErrorKind::kInvalidInput,
                "Preset %s serves %s; allowed are \"calibrate\" and \"investigate\".",
                printable(name).c_str(), printable(to_text(*intents)).c_str());
  }
  for (const auto& [flag, value] : flags->items()) {
    if (!is_known_flag(flag)) {
      return fail(ErrorKind::kInvalidInput, "Preset %s has flag \"%s\", which no verb with presets has.",
                  printable(name).c_str(), printable(flag).c_str());
    }
    DP_TRY(std::string given, flag_value(name, flag, value));
    preset.flags.emplace_back(flag, std::move(given));
  }
  return preset;
}

void add_preset_flag(Args& args, PresetUse& use) {
  args.early("preset", "NAME", "flags from a named file (--preset list); those on the line count more",
             [&args, &use](std::string_view name) { return use_preset(args, name, use); });
}

}  // namespace doppler::cli
