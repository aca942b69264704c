// The head of an answer of the file server: the status line and the fields.
#pragma once

#include <string>

namespace doppler::store {

class AnswerHead {
 public:
  explicit AnswerHead(int status);  // with the date
  void set(const char* name, const std::string& value);
  std::string end() { return text_ + "\r\n"; }

 private:
  std::string text_;
};

}  // namespace doppler::store
