// Llama 3: {"name": "f", "parameters": {...}} as the whole answer, sometimes after <|python_tag|>; ";" separates
// several. Python code after that mark is no call of a function and stays text.
#include "openai/formats/formats.h"
#include "openai/formats/json_call.h"

namespace doppler::openai {
namespace {

class Llama3Reader : public CallReader {
 public:
  Taken take(char c, AnswerEvents& out) override {
    if (is_between_) {
      if (c == ' ' || c == '\n' || c == ';' || c == ',') return Taken::kMore;
      if (c != '{') return Taken::kRefused;
      call_ = {};
      is_between_ = false;
    }
    const Taken taken = call_.take(c, out);
    has_begun_ |= call_.has_begun();
    is_between_ = taken == Taken::kEnd;
    return is_between_ ? Taken::kMore : taken;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  JsonCall call_;
  bool is_between_ = false, has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_llama3_reader(std::string_view) { return std::make_unique<Llama3Reader>(); }

}  // namespace doppler::openai
