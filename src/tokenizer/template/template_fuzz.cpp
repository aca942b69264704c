// Fuzzing of chat templates: the input is a template, rendered with a fixed conversation with tools.
// Corpus: tests/fuzz/template.
#include <string_view>

#include "tokenizer/template/chat_template.h"
#include "tokenizer/template/render_input.h"

namespace {

doppler::tmpl::RenderInput conversation() {
  doppler::tmpl::RenderInput input;
  const auto json = doppler::parse_json(
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Grüße, 世界"},
          {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
           "function":{"name":"f","arguments":{"a":[1,2.5,null,true]}}}]},
          {"role":"tool","content":"x","tool_call_id":"1"},{"role":"user","content":[{"type":"text","text":"t"}]}])",
      "conversation");
  if (json) input.messages = *json;
  input.tools = doppler::Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  input.extra["enable_thinking"] = true;
  input.now = doppler::tmpl::DateTime{};
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const doppler::tmpl::RenderInput input = conversation();
  const auto parsed =
      doppler::tmpl::ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (parsed) (void)parsed->render(input);
  return 0;
}
