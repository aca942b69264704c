// A call as Python writes it, f(a="b", n=3, l=[True, None]), with named arguments that are literals.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "openai/formats/output_parser.h"

namespace doppler::openai {

class PythonCall {
 public:
  // kEnd with the closing bracket: the call was given out. kRefused: it is no such call.
  Taken take(char c, AnswerEvents& out);

 private:
  Taken finish(AnswerEvents& out) const;

  std::string text_;
  int depth_ = 0;
  char quote_ = 0;  // of the string that is open
  bool is_escaped_ = false;
};

// The same from {"name", "arguments"}.
std::string python_call(const Json& function);

}  // namespace doppler::openai
