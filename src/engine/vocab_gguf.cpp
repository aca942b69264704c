// GgufFile as the metadata that tokenizer/vocab_metadata.h asks for (vocab_gguf.h).
#include "engine/vocab_gguf.h"

#include "tokenizer/vocab_metadata.h"

namespace doppler::engine {
namespace {

class GgufMetadata : public tokenizer::VocabMetadata {
 public:
  explicit GgufMetadata(const formats::GgufFile& file) : file_(file) {}

  Result<std::optional<std::string>> text(std::string_view key) const override {
    return file_.get_string(key);
  }
  Result<std::optional<int64_t>> integer(std::string_view key) const override {
    return file_.get_integer(key);
  }
  Result<std::optional<bool>> boolean(std::string_view key) const override { return file_.get_bool(key); }
  Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const override {
    return file_.get_strings(key);
  }
  Result<std::optional<std::vector<double>>> numbers(std::string_view key) const override {
    return file_.get_numbers(key);
  }
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const override {
    return file_.get_integers(key);
  }

 private:
  const formats::GgufFile& file_;
};

}  // namespace

Result<tokenizer::VocabSpec> vocab_from_gguf(const formats::GgufFile& file) {
  auto spec = tokenizer::vocab_from_metadata(GgufMetadata(file));
  if (!spec) return forward(std::move(spec).error().add_while("reading the tokenizer of the GGUF file"));
  return spec;
}

}  // namespace doppler::engine
