// Flags of one verb: declared with what they set, parsed with exact error sentences and "did you mean", printed by
// --help. `--name value`, `--name=value` and `-n value` are the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::cli {

// "64M" -> 67108864: a whole number of bytes, or of KiB, MiB or GiB by one of the letters K, M and G.
std::optional<uint64_t> parse_bytes(std::string_view text);

// The range of a count.
struct CountRange {
  uint32_t least = 0, most = UINT32_MAX;
};

class Args {
 public:
  // usage: "doppler run [flags] [prompt]"; summary: one line.
  Args(std::string usage, std::string summary) : usage_(std::move(usage)), summary_(std::move(summary)) {}

  // name: without dashes. letter: its short form or 0. value: the word for the value in --help.
  Args& flag(std::string_view name, char letter, std::string_view help, bool* out);
  Args& text(std::string_view name, char letter, std::string_view value, std::string_view help,
             std::string* out);
  Args& texts(std::string_view name, char letter, std::string_view value, std::string_view help,
              std::vector<std::string>* out);  // may be repeated
  Args& name(std::string_view name, char letter, std::string_view value, std::string_view help,
             std::string* out);  // a text that is not empty
  Args& count(std::string_view name, char letter, std::string_view value, std::string_view help,
              uint32_t* out, CountRange range = {});
  Args& big_count(std::string_view name, char letter, std::string_view value, std::string_view help,
                  uint64_t* out);
  Args& bytes(std::string_view name, char letter, std::string_view value, std::string_view help,
              uint64_t* out);  // 512M, 8G
  Args& number(std::string_view name, char letter, std::string_view value, std::string_view help, float* out);
  // A flag of any other kind: `set` gets the value and may refuse it.
  Args& custom(std::string_view name, char letter, std::string_view value, std::string_view help,
               std::function<Result<void>(std::string_view)> set);
  // A custom flag whose `set` is called before all others', wherever it stands: what they say then counts.
  Args& early(std::string_view name, std::string_view value, std::string_view help,
              std::function<Result<void>(std::string_view)> set);
  // Takes words that are no flags; without this call such a word is an error.
  Args& words(std::string_view name, std::vector<std::string>* out);
  // A heading in --help for the flags that follow.
  Args& group(std::string_view heading);

  // Sets wants_help() on --help or -h. "--" ends the flags.
  Result<void> parse(std::span<const std::string> arguments);
  bool wants_help() const { return wants_help_; }
  std::string help() const;
  // Names of the flags that the last parse() was given, in order.
  const std::vector<std::string>& given() const { return given_; }
  // For an early flag. `name` without dashes; a flag without a value is given "".
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Result<void> give(std::string_view name, std::string_view value);
  // The verb prints this text and does nothing else, as with --help.
  void answer_with(std::string text);

 private:
  struct Flag {
    std::string name;
    char letter = 0;
    std::string value;  // empty: takes none
    std::string help;
    std::function<Result<void>(std::string_view)> set;
    bool is_heading = false;
    bool is_early = false;
  };
  struct Given {
    const Flag* flag;
    std::string_view value;
  };
  Args& add(std::string_view name, char letter, std::string_view value, std::string_view help,
            std::function<Result<void>(std::string_view)> set);
  const Flag* find(std::string_view name) const;
  const Flag* find(char letter) const;
  Result<std::vector<Given>> read(std::span<const std::string> arguments);

  std::string usage_, summary_;
  std::vector<Flag> flags_;
  std::vector<std::string>* words_ = nullptr;
  std::string words_name_, answer_;
  std::vector<std::string> given_;
  bool wants_help_ = false;
};

}  // namespace doppler::cli
