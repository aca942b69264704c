// extended_regex.h by the C++ library, which reports errors by exceptions: this file is compiled with them.
#include <regex>
#include <utility>

#include "base/extended_regex.h"

namespace doppler {

struct ExtendedRegex::Compiled {
  std::regex regex;
};

ExtendedRegex::ExtendedRegex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
ExtendedRegex::ExtendedRegex(ExtendedRegex&&) noexcept = default;
ExtendedRegex& ExtendedRegex::operator=(ExtendedRegex&&) noexcept = default;
ExtendedRegex::~ExtendedRegex() = default;

Result<ExtendedRegex> ExtendedRegex::compile(const std::string& text) {
  if (text.empty()) return fail(ErrorKind::kInvalidInput, "\"\" is no regular expression: it is empty.");
  auto compiled = std::make_unique<Compiled>();
  try {
    compiled->regex.assign(text, std::regex::extended | std::regex::nosubs);
  } catch (const std::regex_error& error) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no regular expression: %s", printable(text).c_str(),
                error.what());
  }
  return ExtendedRegex(std::move(compiled));
}

bool ExtendedRegex::is_found_in(const std::string& text) const {
  try {
    return std::regex_search(text, compiled_->regex);
  } catch (const std::regex_error&) {  // too much work: no match
    return false;
  }
}

}  // namespace doppler
