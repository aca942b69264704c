// extended_regex.h by the C library.
#include <regex.h>

#include <utility>

#include "base/extended_regex.h"

namespace doppler {

struct ExtendedRegex::Compiled {
  regex_t regex{};
  bool is_whole = false;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (is_whole) ::regfree(&regex);
  }
};

ExtendedRegex::ExtendedRegex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
ExtendedRegex::ExtendedRegex(ExtendedRegex&&) noexcept = default;
ExtendedRegex& ExtendedRegex::operator=(ExtendedRegex&&) noexcept = default;
ExtendedRegex::~ExtendedRegex() = default;

Result<ExtendedRegex> ExtendedRegex::compile(const std::string& text) {
  auto compiled = std::make_unique<Compiled>();
  const int error =
      text.empty() ? REG_BADPAT : ::regcomp(&compiled->regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error != 0) {
    char reason[128];
    ::regerror(error, &compiled->regex, reason, sizeof reason);
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no regular expression: %s.", printable(text).c_str(),
                reason);
  }
  compiled->is_whole = true;
  return ExtendedRegex(std::move(compiled));
}

bool ExtendedRegex::is_found_in(const std::string& text) const {
  return ::regexec(&compiled_->regex, text.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace doppler
