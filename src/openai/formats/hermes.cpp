// Hermes and Qwen: <tool_call>{"name": "f", "arguments": {...}}</tool_call>, one after the other.
#include "openai/formats/formats.h"
#include "openai/formats/json_call.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kHermesClosing = "</tool_call>";

class HermesReader : public CallReader {
 public:
  Taken take(char c, AnswerEvents& out) override {
    if (!is_whole_) {
      const Taken taken = call_.take(c, out);
      is_whole_ = taken == Taken::kEnd;
      return is_whole_ ? Taken::kMore : taken;
    }
    if (closing_.empty() && (c == ' ' || c == '\n')) return Taken::kMore;
    closing_ += c;
    if (closing_ == kHermesClosing) return Taken::kEnd;
    return kHermesClosing.starts_with(closing_) ? Taken::kMore : Taken::kRefused;
  }
  bool has_begun() const override { return call_.has_begun(); }

 private:
  JsonCall call_;
  bool is_whole_ = false;
  std::string closing_;
};

}  // namespace

std::unique_ptr<CallReader> make_hermes_reader(std::string_view) { return std::make_unique<HermesReader>(); }

}  // namespace doppler::openai
