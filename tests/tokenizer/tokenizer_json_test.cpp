// The shipped default model's tokenizer.json against the ids its own training tools gave, and the text back.
#include <gtest/gtest.h>

#include "base/json.h"
#include "vocab_files_native.h"

namespace doppler {
namespace {

std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> out;
  for (const Json& id : list) out.push_back(id.get<int32_t>());
  return out;
}

TEST(TokenizerJsonFile, ReferenceIds) {
  const std::string folder = TOKENIZER_DIR "/";
  auto spec = tokenizer::vocab_from_tokenizer_json(read_file(folder + "tokenizer.json"),
                                                   read_file(folder + "tokenizer_config.json"));
  ASSERT_TRUE(spec) << spec.error().message();
  const auto made = tokenizer::Tokenizer::create(std::move(*spec));
  ASSERT_TRUE(made) << made.error().message();
  const tokenizer::Tokenizer& t = **made;
  EXPECT_EQ(t.vocab_size(), 8192u);
  EXPECT_EQ(t.token_text(t.eos()), "<|end|>");
  EXPECT_TRUE(t.is_end_of_generation(t.eos()));

  const auto document = parse_json(read_file(folder + "tokenizer_vectors.json"), "tokenizer_vectors.json");
  ASSERT_TRUE(document);
  const Json* vectors = find(*document, "vectors");
  ASSERT_TRUE(vectors && !vectors->empty());
  for (const Json& vector : *vectors) {
    const std::string text = get_string(vector, "text")->value();
    EXPECT_EQ(t.encode(text, {.parse_special = true}).value(), ids_of(*find(vector, "ids"))) << text;
    EXPECT_EQ(t.encode(text, {.add_special = true, .parse_special = true}).value(),
              ids_of(*find(vector, "ids_with_bos")))
        << text;
    EXPECT_EQ(t.decode(ids_of(*find(vector, "ids"))).value(), text);
  }
}

// Details of its steps against Hugging Face tokenizers (tools/make_tokenizer_vectors.py).
TEST(TokenizerJsonFile, StepsAreThoseOfHuggingFace) {
  const auto document = parse_json(read_file("tests/data/tokenizer_vectors.json"), "tokenizer_vectors.json");
  ASSERT_TRUE(document) << document.error().message();
  for (const Json& row : *find(*document, "cases")) {
    const std::string name = get_string(row, "name")->value();
    auto spec = tokenizer::vocab_from_tokenizer_json(to_text(*find(row, "tokenizer")), "");
    ASSERT_TRUE(spec) << name << spec.error().message();
    const auto made = tokenizer::Tokenizer::create(std::move(*spec));
    ASSERT_TRUE(made) << name << made.error().message();
    for (const Json& pair : *find(row, "texts")) {
      const std::string text = pair[0].text();
      EXPECT_EQ((*made)->encode(text, {.parse_special = true}).value(), ids_of(pair[1]))
          << name << ": " << text;
    }
  }
}

TEST(TokenizerJsonFile, IdsWithoutATokenPrintNothing) {
  auto spec = tokenizer::vocab_from_tokenizer_json(
      R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 5}, "merges": []}})", "");
  ASSERT_TRUE(spec) << spec.error().message();
  const auto made = tokenizer::Tokenizer::create(std::move(*spec));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ((*made)->decode(std::vector<int32_t>{0, 3, 5, 1}).value(), "ab");
  EXPECT_EQ((*made)->token_bytes(3), "");
}

}  // namespace
}  // namespace doppler
