// Lines of batch files: what a line must have, that hostile ones give one sentence, and that what is written is read
// back.
#include "openai/batch_line.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace doppler::openai {
namespace {

std::string line_with(const std::string& fields) {
  return R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x")" + fields +
         "}}";
}

TEST(BatchLine, ARequestIsRead) {
  const BatchLine line = parse_batch_line(line_with(R"(, "seed": 5)"), 7, {});
  ASSERT_TRUE(line.completion) << line.completion.error().sentence();
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_EQ(line.completion->endpoint, Endpoint::kCompletions);
  EXPECT_EQ(line.completion->request.options.sampling.seed, 5u);
}

TEST(BatchLine, TheBodySaysWhatItIsWhereTheLineDoesNot) {
  const BatchLine chat = parse_batch_line(
      R"({"custom_id": "a", "body": {"messages": [{"role": "user", "content": "x"}]}})", 1, {});
  ASSERT_TRUE(chat.completion) << chat.completion.error().sentence();
  EXPECT_EQ(chat.completion->endpoint, Endpoint::kChatCompletions);
  const BatchLine completion = parse_batch_line(R"({"custom_id": "a", "body": {"prompt": "x"}})", 1, {});
  ASSERT_TRUE(completion.completion) << completion.completion.error().sentence();
  EXPECT_EQ(completion.completion->endpoint, Endpoint::kCompletions);
}

TEST(BatchLine, WithoutASeedEachIdHasItsOwn) {
  const auto seed_of = [](const std::string& id, uint64_t base) {
    GenerateOptions defaults;
    defaults.sampling.seed = base;
    const BatchLine line =
        parse_batch_line(R"({"custom_id": ")" + id +
                             R"(", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x"}})",
                         1, defaults);
    return line.completion->request.options.sampling.seed;
  };
  EXPECT_EQ(seed_of("a", 0), seed_of("a", 0));
  EXPECT_NE(seed_of("a", 0), seed_of("b", 0));
  EXPECT_EQ(seed_of("a", 3), seed_of("a", 0) + 3);
}

TEST(BatchLine, HostileLinesAreOneSentence) {
  const std::string deep(100'000, '[');
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), std::string("\"x\""),
        std::string("{\"custom_id\": \"\xff\"}"), std::string("{}"), std::string(R"({"custom_id": 7})"),
        std::string(R"({"custom_id": ""})"), deep, R"({"custom_id": )" + deep, std::string(1, '\0')}) {
    const BatchLine line = parse_batch_line(text, 1, {});
    EXPECT_FALSE(line.completion) << text.substr(0, 40);
    EXPECT_FALSE(line.custom_id) << text.substr(0, 40);
  }
}

TEST(BatchLine, WithoutAnIdTheErrorNamesWhatIsThere) {
  const char* const cases[][2] = {
      {"[1]", "The line must be an object, but it is [1]."},
      {"{}", "Field \"custom_id\" is missing; a text is needed that no other line has."},
      {R"({"custom_id": ""})", "Field \"custom_id\" is empty; a text is needed that no other line has."},
      {R"({"custom_id": 7})", "Field \"custom_id\" must be a string, but it is 7."},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(parse_batch_line(text, 1, {}).completion.error().message(), message);
}

TEST(BatchLine, WithAnIdTheErrorIsTheLinesOwn) {
  const char* const cases[][2] = {
      {R"({"custom_id": "a"})", "\"body\" is missing"},
      {R"({"custom_id": "a", "method": "GET"})", "allowed is POST"},
      {R"({"custom_id": "a", "method": ""})", "allowed is POST"},
      {R"({"custom_id": "a", "temperature": 0, "body": {"prompt": "x"}})",
       "\"temperature\" does not belong to a line"},
      {R"({"custom_id": "a", "body": "x"})", "must be an object"},
      {R"({"custom_id": "a", "body": {}})", "\"prompt\""},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/embeddings"})", "/v1/chat/completions"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/completions"})", "\"body\" is missing"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": "x"})", "must be an object"},
      {R"({"custom_id": "a", "method": 1})", "\"method\" must be a string"},
  };
  for (const auto& [text, part] : cases) {
    const BatchLine line = parse_batch_line(text, 1, {});
    EXPECT_EQ(line.custom_id, "a") << text;
    ASSERT_FALSE(line.completion) << text;
    EXPECT_NE(line.completion.error().sentence().find(part), std::string::npos)
        << line.completion.error().sentence();
  }
}

TEST(BatchLine, WhatIsWrittenIsReadBack) {
  const std::string answer = answer_line(7, "a \"b\"\n", Json{{"object", "chat.completion"}});
  EXPECT_EQ(answer, R"({"id":"batch_req_7","custom_id":"a \"b\"\n","response":{"status_code":200,)"
                    R"("request_id":"req_7","body":{"object":"chat.completion"}},"error":null})"
                    "\n");
  const auto read = parse_written_line(answer);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, 7u);
  EXPECT_EQ(read->custom_id, "a \"b\"\n");
  EXPECT_EQ(read->error_code, "");

  const BatchLine wrong = parse_batch_line("{}", 8, {});
  const std::string error = error_line(wrong, wrong.completion.error());
  EXPECT_EQ(
      error,
      R"({"id":"batch_req_8","custom_id":null,"response":null,"error":{"code":"invalid_request",)"
      R"("message":"Line 8: Field \"custom_id\" is missing; a text is needed that no other line has."}})"
      "\n");
  EXPECT_EQ(parse_written_line(error)->number, 8u);
  EXPECT_EQ(parse_written_line(error)->error_code, kInvalidRequest);
  EXPECT_FALSE(parse_written_line(error)->custom_id);
}

TEST(BatchLine, OtherFilesAreNoAnswers) {
  for (const char* text :
       {"", "{}", "[]", R"({"id": "batch_req_1"})", R"({"id": "batch_req_0", "response": {}, "error": null})",
        R"({"id": "x", "custom_id": "a", "response": {}, "error": null})",
        R"({"id": "batch_req_1", "custom_id": "a", "response": {}, "error": {}})",
        R"({"id": "batch_req_1", "response": {}, "error": null})"}) {
    EXPECT_FALSE(parse_written_line(text)) << text;
  }
  EXPECT_FALSE(parse_written_line(line_with("")));
  EXPECT_TRUE(may_begin_line(R"({"id")"));
  EXPECT_TRUE(may_begin_line(R"({"id":"batch_req_12","cus)"));
  EXPECT_FALSE(may_begin_line(R"({"custom_id")"));
}

}  // namespace
}  // namespace doppler::openai
