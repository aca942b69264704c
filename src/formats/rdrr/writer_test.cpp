// RdrrWriter: what is written is what was given; interrupted runs leave no half model and go on where they were.
#include <gtest/gtest.h>

#include "formats/rdrr/integrity.h"
#include "formats/rdrr/rdrr_writer.h"
#include "formats/rdrr/test_models.h"
#include "formats/rdrr/write_progress_native.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> bytes_in(const Files& files, const RdrrManifest& manifest, const RdrrTensor& tensor) {
  std::vector<uint8_t> all;
  for (const RdrrShard& shard : manifest.shards) {
    const auto& bytes = files.at(shard.file);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  const auto begin =
      all.begin() + static_cast<ptrdiff_t>(tensor.shard * manifest.shard_bytes + tensor.offset);
  return {begin, begin + static_cast<ptrdiff_t>(tensor.bytes)};
}

TEST(RdrrWriter, WritesWhatItWasGiven) {
  const TemporaryFolder home;
  const auto writer = must_open(home / "m");
  const RdrrManifest manifest = finish_small(*writer);
  EXPECT_FALSE(fs::exists(home / "m.part"));
  const Files files = files_of(home / "m");
  ASSERT_EQ(files.size(), manifest.shards.size() + 2);
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    EXPECT_EQ(manifest.tensors[i].offset % kRdrrAlignment, 0u);
    EXPECT_EQ(bytes_in(files, manifest, manifest.tensors[i]), tensor_bytes(manifest, i)) << i;
  }
  for (const RdrrShard& shard : manifest.shards) {
    EXPECT_EQ(sha256(files.at(shard.file)), shard.sha256);
    EXPECT_EQ(files.at(shard.file).size(), shard.bytes);
  }
}

TEST(RdrrWriter, TheManifestReadsBackAsItWasWritten) {
  const TemporaryFolder home;
  RdrrManifest outline = small_outline();
  outline.generation = Json{{"temperature", 0.7}};
  outline.tokenizer = RdrrPlace{.asset = kRdrrGgufMetadata, .key = "", .unknown = {}};
  outline.chat_template =
      RdrrPlace{.asset = kRdrrGgufMetadata, .key = "tokenizer.chat_template", .unknown = {}};
  outline.draft = RdrrDraft{.model = "tiny", .model_sha256 = Sha256{1, 2}, .unknown = {}};
  outline.kernel_hints = {{{.operation = "matvec.q8_0",
                            .variant = "matvec.q8_0.x",
                            .wgsl_sha256 = {3},
                            .device = "a GPU",
                            .unknown = {}},
                           {.operation = "matvec.q8_0",
                            .variant = "matvec.q8_0.y",
                            .wgsl_sha256 = {3},
                            .device = "a GPU",
                            .measured = {{.shape = "64x64",
                                          .lane = "fast",
                                          .constants = {{"slices", 8}},
                                          .seconds = 0.001,
                                          .table_seconds = 0.0015,
                                          .unknown = Json{{"by", "hand"}}}},
                            .unknown = {}}}};
  RdrrSelfTest test;
  test.tokens = {1, 2};
  test.positions = {{.position = 1, .ids = {7, 8}, .logits = {1.5f, 0.1f}, .unknown = {}}};
  test.tolerance = 1e-3f;
  test.lane = "exact";
  outline.self_test = test;
  outline.unknown = Json{{"colour", "red"}};
  outline.tensors[2].unknown = Json{{"mood", Json::array({1, nullptr})}};
  const auto writer = must(RdrrWriter::open(home / "m", outline, {}));
  RdrrManifest written = finish_small(*writer);
  const auto bytes = read_file(home / "m/manifest.json");
  const std::string text(bytes.begin(), bytes.end());
  RdrrParsed parsed = must(parse_rdrr_manifest(text, "manifest.json"));
  EXPECT_EQ(rdrr_manifest_text(parsed.manifest), text);
  EXPECT_EQ(rdrr_manifest_text(written), text);
  EXPECT_EQ(parsed.unknown,
            (std::vector<std::string>{"kernel_hints[1].measured.by", "tensors[2].mood", "colour"}));
  EXPECT_EQ(parsed.manifest.self_test->positions[0].logits[1], 0.1f);
  EXPECT_EQ(parsed.manifest.draft->model_sha256, (Sha256{1, 2}));
}

TEST(RdrrWriter, RefusesWhatWouldBeNoModel) {
  const TemporaryFolder home;
  const auto sentence = [&](auto change) {
    RdrrManifest outline = small_outline();
    change(outline);
    const auto opened = RdrrWriter::open(home / "bad", std::move(outline), {});
    return opened ? std::string() : opened.error().sentence();
  };
  EXPECT_NE(sentence([](auto& outline) { outline.shard_bytes = 1000; }).find("multiples of 256"),
            std::string::npos);
  EXPECT_NE(sentence([](auto& outline) { outline.tensors.clear(); }).find("at least one"), std::string::npos);
  EXPECT_NE(sentence([](auto& outline) { outline.tensors[1].name = "\xFF"; }).find("UTF-8"),
            std::string::npos);
  EXPECT_NE(sentence([](auto& outline) { outline.tensors[1].shape = {0}; }).find("dimension of 0"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(home / "bad"));

  const auto writer = must_open(home / "m");
  EXPECT_FALSE(writer->begin_tensor(1)) << "out of order";
  ASSERT_TRUE(writer->begin_tensor(0));
  EXPECT_FALSE(writer->end_tensor()) << "bytes are missing";
  EXPECT_FALSE(writer->write(std::vector<uint8_t>(100000))) << "more than the tensor has";
  EXPECT_FALSE(writer->finish());
  EXPECT_FALSE(fs::exists(home / "m"));
}

TEST(RdrrWriter, OneProcessAtATime) {
  const TemporaryFolder home;
  const auto first = must_open(home / "m");
  const auto second = RdrrWriter::open(home / "m", small_outline(), {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().sentence().find("Another process"), std::string::npos);
}

TEST(RdrrWriter, AnExistingFolderIsReplacedOnlyWhenAskedAndOnlyIfItIsAModel) {
  const TemporaryFolder home;
  finish_small(*must_open(home / "m"));
  EXPECT_FALSE(RdrrWriter::open(home / "m", small_outline(), {}));
  finish_small(*must_open(home / "m", {.fingerprint = "", .replace = true}));
  EXPECT_FALSE(fs::exists(home / "m.part"));
  std::ofstream(home / "m/diary.txt") << "dear diary";
  const auto refused = RdrrWriter::open(home / "m", small_outline(), {.fingerprint = "", .replace = true});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().sentence().find("diary.txt"), std::string::npos);
  EXPECT_TRUE(fs::exists(home / "m/diary.txt"));
}

TEST(RdrrWriter, AFolderWithTheWorkingNameThatIsSomethingElseIsNotEmptied) {
  const TemporaryFolder home;
  fs::create_directory(home / "m.part");
  std::ofstream(home / "m.part/diary.txt") << "dear diary";
  const auto refused = RdrrWriter::open(home / "m", small_outline(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().sentence().find("move it away"), std::string::npos);
  EXPECT_TRUE(fs::exists(home / "m.part/diary.txt"));
  // A run that was killed after its last file and before the renaming.
  fs::remove_all(home / "m.part");
  finish_small(*must_open(home / "m"));
  fs::rename(home / "m", home / "m.part");
  finish_small(*must_open(home / "m"));
  EXPECT_TRUE(fs::exists(home / "m/manifest.json"));
}

// A run that ends after any number of bytes is continued to the same folder, and rewrites no complete shard.
TEST(RdrrWriter, GoesOnAfterAnyInterruption) {
  const TemporaryFolder home;
  finish_small(*must_open(home / "whole"));
  const Files whole = files_of(home / "whole");
  RdrrManifest outline = small_outline();
  ASSERT_TRUE(rdrr_lay_out(outline));
  for (size_t stop = 0; stop <= outline.tensors.size(); ++stop) {
    for (const uint64_t part : {uint64_t{0}, uint64_t{700}}) {
      {
        const auto writer = must_open(home / "m");
        for (size_t i = 0; i < stop; ++i) write_tensor(*writer, i);
        if (stop < outline.tensors.size() && outline.tensors[stop].bytes > part) {
          ASSERT_TRUE(writer->begin_tensor(stop));
          const std::vector<uint8_t> bytes = tensor_bytes(outline, stop);
          ASSERT_TRUE(writer->write(std::span(bytes).first(part)));
        }
        EXPECT_FALSE(fs::exists(home / "m"));
      }
      const auto resumed = must_open(home / "m");
      uint64_t complete = 0;
      for (const RdrrTensor& t : outline.tensors) {
        if (&t == &outline.tensors[resumed->first_incomplete()]) break;
        complete = t.shard * outline.shard_bytes + t.offset + t.bytes;
      }
      EXPECT_LE(complete, resumed->resumed_bytes());
      if (stop == outline.tensors.size()) {
        EXPECT_EQ(resumed->first_incomplete(), outline.tensors.size());
      }
      finish_small(*resumed);
      EXPECT_EQ(files_of(home / "m"), whole) << stop;
      fs::remove_all(home / "m");
    }
  }
}

TEST(RdrrWriter, OtherOptionsOrDamagedShardsAreBegunAnew) {
  const TemporaryFolder home;
  const auto interrupted = [&] {
    const auto writer = must_open(home / "m", {.fingerprint = "a", .replace = false});
    for (size_t i = 0; i < 3; ++i) write_tensor(*writer, i);
  };
  interrupted();
  EXPECT_GT(must_open(home / "m", {.fingerprint = "a", .replace = false})->resumed_bytes(), 0u);
  EXPECT_EQ(must_open(home / "m", {.fingerprint = "b", .replace = false})->resumed_bytes(), 0u);
  interrupted();
  flip_byte(home / "m.part/shard_00001.bin", 5);
  EXPECT_EQ(must_open(home / "m", {.fingerprint = "a", .replace = false})->resumed_bytes(), 1024u);
}

}  // namespace
}  // namespace doppler::formats
