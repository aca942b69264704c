// Harmony of gpt-oss: an answer is messages, each a head, <|message|>, its text and <|end|>, <|call|> or <|return|>.
// The head has a channel and perhaps whom the message is for: <|start|>assistant<|channel|>commentary to=functions.f
// <|constrain|>json<|message|>{...}<|call|>. The prompt ends after the first "<|start|>assistant".
#include <array>

#include "base/json.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kTo = "to=functions.",
                           kAnalysis = "analysis";
// They end a text. The last two begin a head where the end of the text before was forgotten.
constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>", kChannel};
constexpr size_t kMostHeadBytes = 512;  // longer: the model writes no messages

std::string member(const Json& object, const char* name) {
  const auto text = get_string(object, name);
  return text ? text->value_or("") : "";
}

class HarmonyReader : public CallReader {
 public:
  explicit HarmonyReader(bool has_tools) : has_tools_(has_tools) {}

  Taken take(char c, AnswerEvents& out) override {
    if (in_head_) {
      head_ += c;
      if (head_.ends_with(kMessage)) begin_text(out);
      if (head_.size() > kMostHeadBytes) finish(out);
      return Taken::kMore;
    }
    held_ += c;
    while (!held_.empty()) {
      bool may_become = false;
      for (const std::string_view mark : kEnds) {
        if (mark == held_) {
          end_text(out);
          head_ = mark == kChannel ? kChannel : "";
          held_.clear();
          return Taken::kMore;
        }
        may_become |= mark.starts_with(held_);
      }
      if (may_become) break;
      give(std::string_view(held_).substr(0, 1), out);
      held_.erase(0, 1);
    }
    return Taken::kMore;
  }

  void finish(AnswerEvents& out) override {
    if (in_head_) kind_ = AnswerEvent::Kind::kText;
    if (!in_head_ || !has_message_) give(in_head_ ? head_ : held_, out);
    in_head_ = false;
    has_message_ = true;
    head_.clear();
    held_.clear();
  }
  bool has_begun() const override { return true; }

 private:
  // A message for something that is no tool of the request is the model's own, as reasoning is.
  void begin_text(AnswerEvents& out) {
    const size_t to = head_.find(kTo), channel = head_.rfind(kChannel);
    in_head_ = false;
    has_message_ = true;
    const bool is_own =
        head_.find("to=") != std::string::npos && head_.find("to=assistant") == std::string::npos;
    const std::string_view name = channel == std::string::npos
                                      ? std::string_view()
                                      : std::string_view(head_).substr(channel + kChannel.size());
    kind_ = is_own || name.starts_with(kAnalysis) ? AnswerEvent::Kind::kReasoning : AnswerEvent::Kind::kText;
    if (has_tools_ && to != std::string::npos) {
      const size_t begin = to + kTo.size();
      kind_ = AnswerEvent::Kind::kArguments;
      out.add(AnswerEvent::Kind::kCall,
              std::string_view(head_).substr(begin, head_.find_first_of(" <", begin) - begin));
    }
    head_.clear();
    is_empty_ = true;
  }

  // Two messages of a kind are two paragraphs.
  void give(std::string_view text, AnswerEvents& out) {
    if (text.empty()) return;
    bool& was_told = told_[kind_ == AnswerEvent::Kind::kReasoning];
    if (kind_ != AnswerEvent::Kind::kArguments && is_empty_ && std::exchange(was_told, true))
      out.add(kind_, "\n\n");
    is_empty_ = false;
    out.add(kind_, text);
  }

  void end_text(AnswerEvents& out) {
    if (kind_ == AnswerEvent::Kind::kArguments && is_empty_) give("{}", out);
    in_head_ = true;
  }

  const bool has_tools_;
  bool in_head_ = true, has_message_ = false;
  bool is_empty_ = true;           // the message's text so far
  std::array<bool, 2> told_ = {};  // a text, reasoning
  AnswerEvent::Kind kind_ = AnswerEvent::Kind::kText;
  std::string head_, held_;
};

}  // namespace

std::unique_ptr<CallReader> make_harmony_reader(std::string_view tools) {
  return std::make_unique<HarmonyReader>(!tools.empty());
}

// The template reads one call of a message, its reasoning or its content, and each tool's description.
void prepare_harmony(ChatFields& chat, std::string_view) {
  for (Json& tool : chat.tools) {
    if (!tool["function"].contains("description")) tool["function"]["description"] = "";
  }
  Json out = Json::array();
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    Json message = chat.messages[i];
    if (!message.contains("tool_calls")) {
      out.push_back(std::move(message));
      continue;
    }
    const Json calls = message["tool_calls"];
    const std::string reasoning = member(message, "reasoning_content"), content = member(message, "content");
    message["content"] = reasoning + (reasoning.empty() || content.empty() ? "" : "\n\n") + content;
    const size_t first_result = i + 1;
    for (const Json& call : calls) {
      message["tool_calls"] = Json::array({call});
      out.push_back(message);
      message["content"] = "";
      for (size_t at = first_result; at < chat.messages.size() && chat.messages[at]["role"] == "tool"; ++at) {
        i = at;
        const bool is_of_call =
            calls.size() == 1 || member(chat.messages[at], "tool_call_id") == member(call, "id");
        if (is_of_call) out.push_back(chat.messages[at]);
      }
    }
  }
  chat.messages = std::move(out);
}

}  // namespace doppler::openai
