// Chat templates against python3-jinja2: tests/data/template_vectors.json holds templates, conversations and the texts
// that jinja2 made in the environment of Hugging Face transformers (tools/make_template_vectors.py).
// DOPPLER_TEMPLATE_VECTORS names another file of that form, for templates that may not be committed. Bounds and error
// sentences: chat_template_errors_test.cpp.
#include "tokenizer/template/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tokenizer/template/render_input.h"

namespace doppler::tmpl {
namespace {

Json read_vectors() {
  const char* other = std::getenv("DOPPLER_TEMPLATE_VECTORS");
  std::ifstream file(other ? other : "tests/data/template_vectors.json");
  std::stringstream text;
  text << file.rdbuf();
  Result<Json> json = parse_json(text.str(), "template_vectors.json");
  if (!json) {
    ADD_FAILURE() << json.error().message();
    return Json::object();
  }
  return *json;
}

const Json& vectors() {
  static const Json json = read_vectors();
  return json;
}

RenderInput input_of(const Json& variables) {
  RenderInput input;
  input.now = DateTime{2025, 3, 7, 9, 5, 2};  // the script uses the same date
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.extra.update(variables);
  return input;
}

// "error: <sentence>" stands for a failure.
std::string rendered(const std::string& source, const Json& variables) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed) return "error: " + parsed.error().message();
  const Result<std::string> text = parsed->render(input_of(variables));
  return text ? *text : "error: " + text.error().message();
}

// `expected` is text, or null where jinja2 fails too.
void expect_same(const std::string& actual, const Json& expected, const std::string& what) {
  if (expected.is_null())
    EXPECT_TRUE(actual.starts_with("error: ")) << what << "\n  gives: " << actual;
  else
    EXPECT_EQ(actual, expected.get<std::string>()) << what;
}

TEST(ChatTemplate, RendersConversationsAsJinja2Does) {
  const Json& cases = vectors()["renders"];
  ASSERT_FALSE(cases.empty());
  for (const Json& row : cases) {
    const std::string name = row[0].get<std::string>();
    const std::string conversation = row[1].get<std::string>();
    const Json& source = vectors()["templates"][name];
    expect_same(rendered(source.get<std::string>(), vectors()["conversations"][conversation]), row[2],
                name + " with " + conversation);
  }
}

TEST(ChatTemplate, EvaluatesSnippetsAsJinja2Does) {
  const Json& cases = vectors()["snippets"];
  for (const Json& row : cases) {
    const std::string source = row[0].get<std::string>();
    expect_same(rendered(source, vectors()["snippet_variables"]), row[1], source);
  }
}

TEST(ChatTemplate, PlainMessagesRenderLikeJsonOnes) {
  const auto parsed = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  ASSERT_TRUE(parsed);
  const ChatMessage messages[] = {{"user", "Hi"}, {"assistant", "Ho"}};
  EXPECT_EQ(*parsed->render(messages, "<s>", "</s>"), "<s>[user]Hi[assistant]Ho[assistant]");
  EXPECT_EQ(*parsed->render(messages, "", "", false), "[user]Hi[assistant]Ho");
  EXPECT_TRUE(parsed->mentions("bos_token"));
  EXPECT_FALSE(parsed->mentions("tools"));
}

}  // namespace
}  // namespace doppler::tmpl
