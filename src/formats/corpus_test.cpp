// Replays the wrong files of corpus_cases.h: each must give its sentence, whole or from any prefix, and never
// crash. With DOPPLER_WRITE_CORPUS=<folder> the cases are also written there, as seeds for the fuzz targets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "formats/corpus_cases.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors.h"
#include "formats/safetensors/safetensors_index.h"

namespace doppler::formats {
namespace {

void expect_sentence(const CorpusCase& row, const std::string& got) {
  if (row.sentence.empty()) {
    EXPECT_EQ(got, "") << row.name;
  } else {
    EXPECT_NE(got.find(row.sentence), std::string::npos) << row.name << " gave: " << got;
    EXPECT_TRUE(got.ends_with('.')) << row.name << " gave: " << got;
  }
}

void write_corpus(const char* kind, const std::vector<CorpusCase>& cases) {
  const char* folder = std::getenv("DOPPLER_WRITE_CORPUS");
  if (!folder) return;
  const std::filesystem::path path = std::filesystem::path(folder) / kind;
  std::filesystem::create_directories(path);
  for (const CorpusCase& row : cases) {
    std::ofstream(path / row.name, std::ios::binary)
        .write(reinterpret_cast<const char*>(row.bytes.data()),
               static_cast<std::streamsize>(row.bytes.size()));
  }
}

std::string parse_whole_gguf(std::span<const uint8_t> bytes) {
  const auto parse = parse_gguf(bytes, bytes.size(), "x.gguf");
  if (!parse) return parse.error().sentence();
  return parse->file ? "" : "More bytes were wanted than the file has.";
}

TEST(Corpus, Gguf) {
  const auto cases = gguf_cases();
  write_corpus("gguf", cases);
  for (const CorpusCase& row : cases) expect_sentence(row, parse_whole_gguf(row.bytes));
}

// From any prefix the parser either asks for more (and for no more than the file has) or knows the answer.
TEST(Corpus, GgufPrefixesLeadToTheSameAnswer) {
  for (const CorpusCase& row : gguf_cases()) {
    for (size_t length = 0; length <= row.bytes.size(); ++length) {
      uint64_t given = length;
      std::string got = "no answer after 8 rounds";
      for (int round = 0; round < 8; ++round) {
        const auto parse = parse_gguf(std::span(row.bytes).first(given), row.bytes.size(), "x.gguf");
        if (!parse || parse->file) {
          got = parse ? "" : parse.error().sentence();
          break;
        }
        ASSERT_GT(parse->bytes_wanted, given) << row.name;
        ASSERT_LE(parse->bytes_wanted, row.bytes.size()) << row.name;
        given = parse->bytes_wanted;
      }
      expect_sentence(row, got);
    }
  }
}

TEST(Corpus, GgufWithAnyByteFlippedNeverCrashes) {
  const CorpusCase good = gguf_cases().front();
  for (size_t i = 0; i < good.bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::vector<uint8_t> bytes = good.bytes;
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ flip);
      const std::string got = parse_whole_gguf(bytes);
      EXPECT_TRUE(got.empty() || got.ends_with('.')) << got;
    }
  }
}

TEST(Corpus, Safetensors) {
  const auto cases = safetensors_cases();
  write_corpus("safetensors", cases);
  for (const CorpusCase& row : cases) {
    const auto file = parse_safetensors(row.bytes, row.bytes.size(), "x.safetensors");
    expect_sentence(row, file ? "" : file.error().sentence());
  }
}

TEST(Corpus, SafetensorsIndex) {
  const auto cases = index_cases();
  write_corpus("safetensors_index", cases);
  for (const CorpusCase& row : cases) {
    const std::string_view text(reinterpret_cast<const char*>(row.bytes.data()), row.bytes.size());
    const auto index = parse_safetensors_index(text, "model.safetensors.index.json");
    expect_sentence(row, index ? "" : index.error().sentence());
  }
}

}  // namespace
}  // namespace doppler::formats
