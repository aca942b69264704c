// Extended regular expressions of POSIX, searched in short texts.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace doppler {

class ExtendedRegex {
 public:
  // Error: the text is no regular expression; says where it fails.
  static Result<ExtendedRegex> compile(const std::string& text);
  ExtendedRegex(ExtendedRegex&&) noexcept;
  ExtendedRegex& operator=(ExtendedRegex&&) noexcept;
  ~ExtendedRegex();

  bool is_found_in(const std::string& text) const;

 private:
  struct Compiled;
  explicit ExtendedRegex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace doppler
