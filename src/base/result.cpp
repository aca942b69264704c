// Gathers the "While ..." lines of an error and turns it into text. The contract is result.h.
#include "base/result.h"

#include <cstdarg>

namespace doppler {

std::string Error::message() const {
  std::string text = sentence_;
  for (const std::string& step : whiles_) text += "\n  While " + step + ".";
  return text;
}

Unexpected fail(ErrorKind kind, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string sentence = format_text_v(format, args);
  va_end(args);
  return Unexpected(Error(kind, std::move(sentence)));
}

}  // namespace doppler
