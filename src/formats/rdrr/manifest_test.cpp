// Hostile and wrong manifests: each row changes one thing of a good one and names the sentence that must come.
#include "formats/rdrr/manifest.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "formats/rdrr/integrity.h"
#include "formats/rdrr/test_models.h"

namespace doppler::formats {
namespace {

// The text of a good manifest, without files.
std::string good_text() {
  RdrrManifest manifest = small_outline();
  EXPECT_TRUE(rdrr_lay_out(manifest));
  manifest.assets.push_back({.file = kRdrrGgufMetadata, .bytes = 100, .sha256 = {}, .unknown = {}});
  return rdrr_manifest_text(manifest);
}

struct Row {
  const char* name;
  const char* old_text;  // must occur; the first occurrence is replaced
  const char* new_text;
  const char* sentence;
};

constexpr Row kRows[] = {
    {"newer", R"("version": [1,0])", R"("version": [2,0])",
     "RDRR version 2.0; this build reads version 1. A newer"},
    {"older", R"("version": [1,0])", R"("version": [0,9])", "Convert the model again"},
    {"minor_is_fine", R"("version": [1,0])", R"("version": [1,7])", ""},
    {"version_text", R"("version": [1,0])", R"("version": "1.0")", "must be an array"},
    {"other_format", R"("format": "rdrr")", R"("format": "gguf")", "is not an RDRR manifest"},
    {"missing", R"("draft": null,)", "", "\"draft\" is missing (null would mean off)"},
    {"null_id", R"("id": "small")", R"("id": null)", "\"id\" must be a string, but it is null"},
    {"empty_id", R"("id": "small")", R"("id": "")", "has 0 bytes; 1 to"},
    {"nested_architecture", R"("n_layers":1)", R"("n_layers":[1])", "architecture.n_layers"},
    {"unknown_role", R"("role":"embeddings")", R"("role":"colour")",
     "allowed are weights, embeddings, lm_head"},
    {"unknown_layout", R"("layout":"row")", R"("layout":"spiral")", "allowed are flat, row and column"},
    {"unknown_type", R"("dtype":"q8_0")", R"("dtype":"q9_9")", "has the type \"q9_9\", which is not read"},
    {"negative", R"("shape":[20,64])", R"("shape":[-20,64])", "must be a whole number"},
    {"fraction", R"("shape":[20,64])", R"("shape":[20.5,64])", "must be a whole number"},
    {"zero_dimension", R"("shape":[20,64])", R"("shape":[0,64])", "dimension of 0"},
    {"overflowing_shape", R"("shape":[20,64])", R"("shape":[4294967296,4294967296,4294967296])", "overflows"},
    {"too_many_dimensions", R"("shape":[20,64])", R"("shape":[1,1,1,1,1,1,1,20,64])", "at most 8"},
    {"wrong_shape", R"("shape":[20,64])", R"("shape":[21,64])", "its type, shape and layout make"},
    {"odd_offset", R"("offset":512)", R"("offset":500)", "multiples of 256"},
    {"overlap", R"("offset":512)", R"("offset":256)", "begins before the end of the one listed before"},
    {"beyond", R"({"file":"shard_00011.bin","bytes":592)", R"({"file":"shard_00011.bin","bytes":16)",
     "reaches beyond the last shard"},
    {"gap_in_spans", R"([0,0,1024],[1,0,336])", R"([0,0,1024],[2,0,336])", "follow each other without a gap"},
    {"span_too_long", R"([0,0,1024],[1,0,336])", R"([0,0,1025],[1,0,335])", "whole number from 0 to 1024"},
    {"span_of_two", R"([0,0,1024],[1,0,336])", R"([0,0],[1,0,336])", "follow each other without a gap"},
    {"lone_span", R"([[0,0,1024],[1,0,336]])", R"([[0,0,1360]])", "whole number from 0 to 1024"},
    {"no_spans", R"("spans":[[0,0,1024],[1,0,336]])", R"("shard":0,"offset":0,"bytes":1360)",
     "has no \"spans\""},
    {"huge_offset", R"("shard":1,"offset":512,"bytes":256)",
     R"("shard":1,"offset":18446744073709551615,"bytes":256)", "has no \"spans\""},
    {"twice", R"("blk.0.scale")", R"("output_norm.weight")", "occurs twice"},
    {"index_twice", R"("source_index":3)", R"("source_index":2)", "each once"},
    {"index_too_large", R"("source_index":3)", R"("source_index":99)", "each once"},
    {"shard_name", R"("file":"shard_00001.bin")", R"("file":"../../etc/passwd")",
     "it must be \"shard_00001.bin\""},
    {"shard_size", R"({"file":"shard_00001.bin","bytes":1024)", R"({"file":"shard_00001.bin","bytes":1023)",
     "every shard but the last"},
    {"shard_bytes_zero", R"("shard_bytes": 1024)", R"("shard_bytes": 0)", "multiples of 256"},
    {"short_hash", R"("sha256":"00)", R"("sha256":"0)", "64 lower-case hexadecimal digits"},
    {"upper_hash", R"("sha256":"00)", R"("sha256":"A0)", "64 lower-case hexadecimal digits"},
    {"asset_path", R"("file":"metadata.gguf")", R"("file":"../metadata.gguf")",
     "cannot be the name of an asset"},
    {"asset_is_shard", R"("file":"metadata.gguf")", R"("file":"shard_00000.bin")", "cannot be the name"},
    {"asset_gone", R"("file":"metadata.gguf")", R"("file":"other.gguf")",
     "needs the asset \"metadata.gguf\""},
    {"asset_size", R"("bytes":100)", R"("bytes":99999999999999)", "1 to 1073741824 are allowed"},
    {"tokenizer_nowhere", R"("tokenizer": null)", R"("tokenizer": {"asset":"x","key":null})",
     "which is no asset"},
    {"tokenizer_text", R"("tokenizer": null)", R"("tokenizer": "gguf")", "must be an object"},
    {"generation_text", R"("generation": null)", R"("generation": 1)", "null or an object"},
    {"self_test_positions", R"("self_test": null)",
     R"("self_test": {"tokens":[1],"tolerance":0.1,"lane":"exact","positions":[{"position":1,"ids":[1],"logits":[1]}]})",
     "positions within its tokens"},
    {"self_test_lengths", R"("self_test": null)",
     R"("self_test": {"tokens":[1],"tolerance":0.1,"lane":"exact","positions":[{"position":0,"ids":[1,2],"logits":[1]}]})",
     "a finite logit for each id"},
    {"hint_without_digest", R"("kernel_hints": null)",
     R"("kernel_hints": [{"operation":"o","variant":"v","device":"d"}])", "wgsl_sha256\" is missing"},
    {"hint_of_no_time", R"("kernel_hints": null)",
     R"("kernel_hints": [{"operation":"o","variant":"v","device":"d","wgsl_sha256":"0000000000000000000000000000000000000000000000000000000000000000","measured":{"shape":"s","lane":"fast","constants":{"n":8},"seconds":0,"table_seconds":1}}])",
     "seconds and table_seconds above 0"},
    {"hint_of_large_constant", R"("kernel_hints": null)",
     R"("kernel_hints": [{"operation":"o","variant":"v","device":"d","wgsl_sha256":"0000000000000000000000000000000000000000000000000000000000000000","measured":{"shape":"s","lane":"fast","constants":{"n":9999999},"seconds":1,"table_seconds":1}}])",
     "must be a whole number from 0 to 1048576"},
    {"deep", R"("draft": null)", R"("draft": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]])", "nested deeper than"},
    {"no_json", "{", "(", "not valid JSON"},
};

TEST(RdrrManifest, EveryFaultHasItsSentence) {
  const std::string good = good_text();
  ASSERT_TRUE(parse_rdrr_manifest(good, "manifest.json"));
  const char* corpus = std::getenv("DOPPLER_WRITE_CORPUS");
  const auto keep = [&](const std::string& name, const std::string& text) {
    if (!corpus) return;
    const std::filesystem::path folder = std::filesystem::path(corpus) / "manifest";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  keep("good", good);
  for (const Row& row : kRows) {
    std::string text = good;
    const size_t at = text.find(row.old_text);
    ASSERT_NE(at, std::string::npos) << row.name << "\n" << good;
    text.replace(at, std::string_view(row.old_text).size(), row.new_text);
    keep(row.name, text);
    const auto parsed = parse_rdrr_manifest(text, "manifest.json");
    const std::string got = parsed ? "" : parsed.error().sentence();
    if (*row.sentence == '\0') {
      EXPECT_EQ(got, "") << row.name;
    } else {
      EXPECT_NE(got.find(row.sentence), std::string::npos) << row.name << " gave: " << got;
      EXPECT_TRUE(got.ends_with('.')) << row.name << " gave: " << got;
    }
  }
}

TEST(RdrrManifest, AnObjectOfMillionsOfMembersIsRefusedAtOnce) {
  std::string text = R"({"architecture": {)";
  for (int i = 0; i < 1'000'000; ++i) text += "\"k" + std::to_string(i) + "\":1,";
  text += "\"end\":1}}";
  const auto parsed = parse_rdrr_manifest(text, "manifest.json");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().sentence().find("more than 1024 members"), std::string::npos);
}

TEST(RdrrManifest, AnyPrefixAndAnyFlipIsASentence) {
  const std::string good = good_text();
  for (size_t length = 0; length < good.size() - 2; ++length) {
    const auto parsed = parse_rdrr_manifest(good.substr(0, length), "m");
    ASSERT_FALSE(parsed) << length;
    ASSERT_TRUE(parsed.error().sentence().ends_with('.'));
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x10, 0x80}) {
      std::string text = good;
      text[i] = static_cast<char>(text[i] ^ flip);
      const auto parsed = parse_rdrr_manifest(text, "m");
      if (parsed) continue;
      ASSERT_TRUE(parsed.error().sentence().ends_with('.')) << parsed.error().sentence();
    }
  }
}

}  // namespace
}  // namespace doppler::formats
