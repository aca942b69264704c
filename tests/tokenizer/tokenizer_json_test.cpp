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

}  // namespace
}  // namespace doppler
