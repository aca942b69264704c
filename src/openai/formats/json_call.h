// A call as a JSON object, {"name": "f", "arguments": {...}}, read while it arrives: the name when it is whole, the
// arguments piece by piece. Several formats have it between marks of their own.
#pragma once

#include <optional>
#include <string>

#include "openai/formats/output_parser.h"

namespace doppler::openai {

// The extent of one JSON value; what is in it is not checked.
class JsonExtent {
 public:
  enum class Step : uint8_t {
    kInside,
    kLast,
    kBehind
  };  // kBehind: of a number or word, which its end does not show
  Step take(char c);
  bool has_begun() const { return first_ != 0; }
  char first() const { return first_; }

 private:
  char first_ = 0;
  int depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
};

class JsonCall {
 public:
  // kEnd with the object's last character. kRefused: it is no call; once has_begun(), what came was given out.
  Taken take(char c, AnswerEvents& out);
  bool has_begun() const { return has_begun_; }

 private:
  enum class At : uint8_t { kOpening, kKey, kInKey, kColon, kValue, kComma };

  Taken take_value(char c, AnswerEvents& out);
  bool finish_value(AnswerEvents& out);
  Taken finish(AnswerEvents& out);
  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  At at_ = At::kOpening;
  std::string key_, value_;
  JsonExtent extent_;
  bool has_begun_ = false;  // the name is out
  bool has_arguments_ = false;
  std::string arguments_;  // that came before the name
};

}  // namespace doppler::openai
