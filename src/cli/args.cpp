#include "cli/args.h"

#include <algorithm>
#include <cmath>

namespace doppler::cli {
namespace {

Result<uint64_t> parse_count(std::string_view name, std::string_view value, int64_t least, int64_t most) {
  const auto number = parse_int(value);
  if (!number || *number < least || *number > most) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --%s was given \"%s\"; allowed is a whole number from %lld to %lld.",
                std::string(name).c_str(), printable(value).c_str(), static_cast<long long>(least),
                static_cast<long long>(most));
  }
  return static_cast<uint64_t>(*number);
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  uint64_t unit = 1;
  if (const size_t place = text.empty() ? text.npos : kUnits.find(text.back()); place != text.npos) {
    unit = uint64_t{1} << (10 * (place + 1));
    text.remove_suffix(1);
  }
  const auto number = parse_int(text);
  if (!number || *number < 0 || static_cast<uint64_t>(*number) > UINT64_MAX / unit) return std::nullopt;
  return static_cast<uint64_t>(*number) * unit;
}

Args& Args::add(std::string_view name, char letter, std::string_view value, std::string_view help,
                std::function<Result<void>(std::string_view)> set) {
  flags_.push_back({.name = std::string(name),
                    .letter = letter,
                    .value = std::string(value),
                    .help = std::string(help),
                    .set = std::move(set),
                    .is_heading = false,
                    .is_early = false});
  return *this;
}

Args& Args::group(std::string_view heading) {
  flags_.push_back({.name = std::string(heading), .is_heading = true, .is_early = false});
  return *this;
}

Args& Args::flag(std::string_view name, char letter, std::string_view help, bool* out) {
  return add(name, letter, "", help, [out](std::string_view) -> Result<void> {
    *out = true;
    return {};
  });
}

Args& Args::text(std::string_view name, char letter, std::string_view value, std::string_view help,
                 std::string* out) {
  return add(name, letter, value, help, [out](std::string_view given) -> Result<void> {
    *out = std::string(given);
    return {};
  });
}

Args& Args::texts(std::string_view name, char letter, std::string_view value, std::string_view help,
                  std::vector<std::string>* out) {
  return add(name, letter, value, help, [out](std::string_view given) -> Result<void> {
    out->emplace_back(given);
    return {};
  });
}

Args& Args::name(std::string_view name, char letter, std::string_view value, std::string_view help,
                 std::string* out) {
  return add(
      name, letter, value, help, [out, name = std::string(name)](std::string_view given) -> Result<void> {
        if (given.empty()) {
          return fail(ErrorKind::kInvalidInput,
                      "Flag --%s was given \"\"; allowed is any text that is not empty.", name.c_str());
        }
        *out = std::string(given);
        return {};
      });
}

Args& Args::count(std::string_view name, char letter, std::string_view value, std::string_view help,
                  uint32_t* out, CountRange range) {
  return add(name, letter, value, help,
             [out, range, name = std::string(name)](std::string_view given) -> Result<void> {
               DP_TRY(const uint64_t number, parse_count(name, given, range.least, range.most));
               *out = static_cast<uint32_t>(number);
               return {};
             });
}

Args& Args::big_count(std::string_view name, char letter, std::string_view value, std::string_view help,
                      uint64_t* out) {
  return add(name, letter, value, help,
             [out, name = std::string(name)](std::string_view given) -> Result<void> {
               DP_TRY(*out, parse_count(name, given, 0, INT64_MAX));
               return {};
             });
}

Args& Args::bytes(std::string_view name, char letter, std::string_view value, std::string_view help,
                  uint64_t* out) {
  return add(name, letter, value, help,
             [out, name = std::string(name)](std::string_view given) -> Result<void> {
               const auto bytes = parse_bytes(given);
               if (!bytes) {
                 return fail(ErrorKind::kInvalidInput,
                             "Flag --%s was given \"%s\"; it takes bytes, or a number with K, M or G.",
                             name.c_str(), printable(given).c_str());
               }
               *out = *bytes;
               return {};
             });
}

Args& Args::number(std::string_view name, char letter, std::string_view value, std::string_view help,
                   float* out) {
  return add(name, letter, value, help,
             [out, name = std::string(name)](std::string_view given) -> Result<void> {
               const auto number = parse_double(given);
               if (!number) {
                 return fail(ErrorKind::kInvalidInput, "Flag --%s was given \"%s\"; it takes a number.",
                             name.c_str(), printable(given).c_str());
               }
               *out = static_cast<float>(*number);
               if (std::isinf(*out)) {
                 return fail(ErrorKind::kInvalidInput,
                             "Flag --%s was given \"%s\"; allowed are numbers from -3.4e38 to 3.4e38.",
                             name.c_str(), printable(given).c_str());
               }
               return {};
             });
}

Args& Args::custom(std::string_view name, char letter, std::string_view value, std::string_view help,
                   std::function<Result<void>(std::string_view)> set) {
  return add(name, letter, value, help, std::move(set));
}

Args& Args::early(std::string_view name, std::string_view value, std::string_view help,
                  std::function<Result<void>(std::string_view)> set) {
  add(name, 0, value, help, std::move(set));
  flags_.back().is_early = true;
  return *this;
}

Args& Args::words(std::string_view name, std::vector<std::string>* out) {
  words_ = out;
  words_name_ = name;
  return *this;
}

const Args::Flag* Args::find(std::string_view name) const {
  const auto it =
      std::ranges::find_if(flags_, [&](const Flag& f) { return !f.is_heading && f.name == name; });
  return it == flags_.end() ? nullptr : &*it;
}

const Args::Flag* Args::find(char letter) const {
  const auto it =
      std::ranges::find_if(flags_, [&](const Flag& f) { return !f.is_heading && f.letter == letter; });
  return it == flags_.end() ? nullptr : &*it;
}

Result<void> Args::parse(std::span<const std::string> arguments) {
  DP_TRY(const std::vector<Given> given, read(arguments));
  given_.clear();
  for (const Given& one : given) given_.push_back(one.flag->name);
  for (const bool early : {true, false}) {
    for (const Given& one : given) {
      if (one.flag->is_early == early && !wants_help_) DP_CHECK(one.flag->set(one.value));
    }
  }
  return {};
}

Result<void> Args::give(std::string_view name, std::string_view value) { return find(name)->set(value); }

void Args::answer_with(std::string text) {
  answer_ = std::move(text);
  wants_help_ = true;
}

// The flags in the given order, with their values. Words go where they belong.
Result<std::vector<Args::Given>> Args::read(std::span<const std::string> arguments) {
  std::vector<Given> given;
  bool flags_over = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool is_flag = !flags_over && argument.size() > 1 && argument[0] == '-';
    if (!is_flag) {
      if (!words_) {
        return fail(ErrorKind::kInvalidInput, "\"%s\" is not expected here; see --help.",
                    printable(argument).c_str());
      }
      words_->push_back(argument);
      continue;
    }
    if (argument == "--") {
      flags_over = true;
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      wants_help_ = true;
      return given;
    }
    const Flag* flag = nullptr;
    std::string_view value;
    bool has_value = false;
    if (argument.starts_with("--")) {
      std::string_view name = std::string_view(argument).substr(2);
      if (const size_t equals = name.find('='); equals != std::string_view::npos) {
        value = name.substr(equals + 1);
        name = name.substr(0, equals);
        has_value = true;
      }
      flag = find(name);
      if (!flag) {
        std::vector<std::string> names;
        for (const Flag& known : flags_) {
          if (!known.is_heading) names.push_back(known.name);
        }
        const auto suggestion = nearest(name, names);
        return fail(ErrorKind::kInvalidInput, "Flag --%s is not known%s.", printable(name).c_str(),
                    suggestion ? ("; did you mean --" + *suggestion).c_str() : "; see --help");
      }
    } else {
      flag = argument.size() == 2 ? find(argument[1]) : nullptr;
      if (!flag)
        return fail(ErrorKind::kInvalidInput, "Flag %s is not known; see --help.",
                    printable(argument).c_str());
    }
    if (flag->value.empty() && has_value) {
      return fail(ErrorKind::kInvalidInput, "Flag --%s takes no value.", flag->name.c_str());
    }
    if (!flag->value.empty() && !has_value) {
      if (i + 1 == arguments.size()) {
        return fail(ErrorKind::kInvalidInput, "Flag --%s needs a value: %s.", flag->name.c_str(),
                    flag->value.c_str());
      }
      value = arguments[++i];
    }
    given.push_back({.flag = flag, .value = value});
  }
  return given;
}

std::string Args::help() const {
  if (!answer_.empty()) return answer_;
  std::string out = summary_ + "\n\nUsage: " + usage_ + "\n";
  constexpr size_t kHelpColumn = 30;
  for (const Flag& flag : flags_) {
    if (flag.is_heading) {
      out += "\n" + flag.name + "\n";
      continue;
    }
    std::string left =
        flag.letter ? format_text("  -%c, --%s", flag.letter, flag.name.c_str()) : "      --" + flag.name;
    if (!flag.value.empty()) left += " " + flag.value;
    left += left.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                          : std::string(kHelpColumn - left.size(), ' ');
    out += left + flag.help + "\n";
  }
  return out;
}

}  // namespace doppler::cli
