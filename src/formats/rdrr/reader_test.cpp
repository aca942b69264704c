// Opening RDRR folders as checkpoints: mapped and not, verified on first use, remembered, cached.
#include <gtest/gtest.h>

#include "base/log.h"
#include "formats/checkpoint.h"
#include "formats/file_set_native.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/rdrr_reader.h"
#include "formats/rdrr/test_models.h"
#include "formats/rdrr/write_progress_native.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPage = 4096;

RdrrManifest make_model(const std::string& folder, uint64_t shard_bytes) {
  RdrrManifest outline = small_outline();
  outline.shard_bytes = shard_bytes;
  return finish_small(*must(RdrrWriter::open(folder, std::move(outline), {})));
}

std::unique_ptr<Checkpoint> open_folder(const std::string& folder, RdrrOptions options = {}) {
  return must(run_now(open_checkpoint(must(open_file_set(folder)), std::move(options))));
}

std::string refusal_of_all(const Checkpoint& model) {
  for (const TensorInfo& tensor : model.tensors()) {
    if (const auto read = run_now(model.read_tensor(tensor)); !read) return read.error().sentence();
  }
  return "";
}

class LogCapture {
 public:
  LogCapture() {
    set_log_sink([this](LogLevel, std::string_view line) { text_ += std::string(line) + "\n"; });
  }
  ~LogCapture() { set_log_sink({}); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TEST(RdrrReader, GivesEveryTensorWhetherMappedOrNot) {
  for (const uint64_t shard_bytes : {uint64_t{1024}, kPage, uint64_t{1} << 20}) {
    const TemporaryFolder home;
    const RdrrManifest manifest = make_model(home / "m", shard_bytes);
    const auto model = open_folder(home / "m");
    ASSERT_TRUE(model->rdrr());
    EXPECT_EQ(model->kind(), Checkpoint::Kind::kGguf);
    EXPECT_EQ(must(model->gguf()->get_string("general.architecture")), "llama");
    EXPECT_EQ(model->file(0).mapped().empty(), shard_bytes == 1024) << "1024 is no multiple of a page";
    ASSERT_EQ(model->tensors().size(), manifest.tensors.size());
    for (size_t i = 0; i < manifest.tensors.size(); ++i) {
      const TensorInfo& tensor = model->tensors()[i];
      EXPECT_EQ(tensor.name, manifest.tensors[i].name);
      EXPECT_EQ(tensor.shape, manifest.tensors[i].shape);
      const auto expected = tensor_bytes(manifest, i);
      EXPECT_EQ(must(run_now(model->read_tensor(tensor))), expected);
      if (shard_bytes == 1024) continue;
      ASSERT_TRUE(run_now(model->file(0).ready(tensor.offset, tensor.bytes)));
      const auto mapped = model->mapped(tensor);
      EXPECT_TRUE(std::equal(mapped.begin(), mapped.end(), expected.begin(), expected.end()));
    }
  }
}

TEST(RdrrReader, OpensByTheManifestToo) {
  const TemporaryFolder home;
  make_model(home / "m", kPage);
  EXPECT_TRUE(open_folder(home / "m/manifest.json")->rdrr());
}

TEST(RdrrReader, ADamagedShardIsNamedWhenItIsUsedAndNotBefore) {
  for (const uint64_t shard_bytes : {uint64_t{1024}, kPage}) {
    const TemporaryFolder home;
    const RdrrManifest manifest = make_model(home / "m", shard_bytes);
    flip_byte(home / "m/shard_00001.bin", 11);
    const LogCapture log;
    const auto model = open_folder(home / "m");
    ASSERT_TRUE(run_now(model->file(0).read(0, 16))) << "shard 0 is whole";
    const std::string refusal = refusal_of_all(*model);
    EXPECT_NE(refusal.find("shard_00001.bin is damaged"), std::string::npos) << refusal;
    const bool fetched_again = log.text().find("fetched again") != std::string::npos;
    EXPECT_EQ(fetched_again, shard_bytes == 1024);

    const auto careless = open_folder(home / "m", {.verify = false, .stamp_folder = "", .cache_bytes = 0});
    EXPECT_EQ(refusal_of_all(*careless), "");
    EXPECT_NE(log.text().find("is NOT VERIFIED"), std::string::npos) << log.text();
  }
}

TEST(RdrrReader, DamageElsewhereIsNamedAtOnce) {
  const auto refusal = [](auto damage) {
    const TemporaryFolder home;
    make_model(home / "m", 1024);
    damage(home / "m");
    const auto opened = run_now(open_checkpoint(must(open_file_set(home / "m"))));
    return opened ? std::string() : opened.error().sentence();
  };
  EXPECT_NE(refusal([](auto m) { flip_byte(m + "/manifest.json", 30); }).find("manifest.json is damaged"),
            std::string::npos);
  EXPECT_NE(refusal([](auto m) { flip_byte(m + "/metadata.gguf", 30); }).find("metadata.gguf is damaged"),
            std::string::npos);
  EXPECT_NE(refusal([](auto m) { fs::remove(m + "/metadata.gguf"); }).find("metadata.gguf"),
            std::string::npos);
  const auto without_shard = [](uint64_t shard_bytes) {
    const TemporaryFolder home;
    make_model(home / "m", shard_bytes);
    fs::remove(home / "m/shard_00001.bin");
    const auto opened = run_now(open_checkpoint(must(open_file_set(home / "m"))));
    return opened ? refusal_of_all(**opened) : opened.error().sentence();
  };
  EXPECT_NE(without_shard(1024).find("shard_00001.bin"), std::string::npos);
  EXPECT_NE(without_shard(kPage).find("shard_00001.bin is missing"), std::string::npos);
}

// A stamp that says "good" about a damaged shard shows that the shard is not hashed again; a file that was touched is.
TEST(RdrrReader, WhatWasVerifiedIsRememberedUntilTheFileChanges) {
  const TemporaryFolder home;
  make_model(home / "m", kPage);
  const RdrrOptions options{.verify = true, .stamp_folder = home / "cache", .cache_bytes = 0};
  EXPECT_EQ(refusal_of_all(*open_folder(home / "m", options)), "");
  const auto stamps = must(names_in_folder(home / "cache/verified"));
  ASSERT_EQ(stamps.size(), 1u);
  const std::string stamp = home / ("cache/verified/" + stamps[0]);

  const auto old_identity = must(must(open_file_set(home / "m"))
                                     ->map_joined(std::vector<JoinedPart>{
                                         {"shard_00001.bin", fs::file_size(home / "m/shard_00001.bin")}}))
                                .identities[0];
  flip_byte(home / "m/shard_00001.bin", 11);
  EXPECT_NE(refusal_of_all(*open_folder(home / "m", options)), "") << "its time has changed";

  const auto new_identity = must(must(open_file_set(home / "m"))
                                     ->map_joined(std::vector<JoinedPart>{
                                         {"shard_00001.bin", fs::file_size(home / "m/shard_00001.bin")}}))
                                .identities[0];
  ASSERT_NE(old_identity, new_identity);
  const auto bytes = read_file(stamp);
  std::string text(bytes.begin(), bytes.end());
  const size_t at = text.find(old_identity);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, old_identity.size(), new_identity);
  std::ofstream(stamp) << text;
  EXPECT_EQ(refusal_of_all(*open_folder(home / "m", options)), "") << "the stamp is believed";
  flip_byte(stamp, at);
  EXPECT_NE(refusal_of_all(*open_folder(home / "m", options)), "") << "a damaged stamp is not";
}

MemoryFileSet::Files files_in(const std::string& folder) {
  MemoryFileSet::Files files;
  for (const std::string& name : must(names_in_folder(folder))) files[name] = read_file(folder + "/" + name);
  return files;
}

TEST(RdrrReader, TheCacheKeepsTheShardsUsedLast) {
  const TemporaryFolder home;
  make_model(home / "m", 1024);
  uint64_t read = 0;
  MemoryFileSet files(files_in(home / "m"), "", &read);
  const auto open =
      must(run_now(open_rdrr(files, {.verify = true, .stamp_folder = "", .cache_bytes = 2 * 1024})));
  const auto touch = [&](uint64_t shard) {
    const uint64_t before = read;
    EXPECT_TRUE(run_now(open.tensors->read(shard * 1024 + 5, 10)));
    return read - before;
  };
  EXPECT_EQ(touch(0), 1024u);
  EXPECT_EQ(touch(1), 1024u);
  EXPECT_EQ(touch(0), 0u);
  EXPECT_EQ(touch(2), 1024u);  // 1 goes
  EXPECT_EQ(touch(0), 0u);
  EXPECT_EQ(touch(1), 1024u);
  const auto across = must(run_now(open.tensors->read(1000, 2000)));
  EXPECT_EQ(across.size(), 2000u);
}

// Gives damaged bytes the first time.
class FlakyFileSet final : public FileSet {
 public:
  FlakyFileSet(MemoryFileSet::Files files, std::string flaky)
      : good_(files, "", &read_),
        bad_(damaged(std::move(files), flaky), "", &read_),
        flaky_(std::move(flaky)) {}
  const std::string& root() const override { return good_.root(); }
  const std::string& main_file() const override { return good_.main_file(); }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    return name == flaky_ && opened_++ == 0 ? bad_.open(name) : good_.open(name);
  }

 private:
  static MemoryFileSet::Files damaged(MemoryFileSet::Files files, const std::string& name) {
    files[name][7] ^= 1;
    return files;
  }
  uint64_t read_ = 0;
  int opened_ = 0;
  MemoryFileSet good_, bad_;
  std::string flaky_;
};

TEST(RdrrReader, WhatWasDamagedOnTheWayIsFetchedAgainOnce) {
  const TemporaryFolder home;
  make_model(home / "m", 1024);
  FlakyFileSet files(files_in(home / "m"), "shard_00001.bin");
  const LogCapture log;
  const auto open = must(run_now(open_rdrr(files, {})));
  EXPECT_TRUE(run_now(open.tensors->read(1024, 10)));
  EXPECT_NE(log.text().find("shard_00001.bin is damaged"), std::string::npos) << log.text();
}

TEST(RdrrReader, AFolderMadeFromHuggingFaceKeepsItsFiles) {
  const TemporaryFolder home;
  RdrrManifest outline = small_outline();
  outline.source = RdrrSource::kHuggingFace;
  const auto writer = must(RdrrWriter::open(home / "m", outline, {}));
  for (size_t i = 0; i < outline.tensors.size(); ++i) write_tensor(*writer, i);
  EXPECT_FALSE(writer->finish()) << "config.json is needed";
  ASSERT_TRUE(writer->add_asset("config.json", bytes_of_text(R"({"model_type": "llama"})")));
  ASSERT_TRUE(writer->add_asset("chat_template.jinja", bytes_of_text("{{ messages }}")));
  must(writer->finish());
  const auto model = open_folder(home / "m");
  EXPECT_EQ(model->kind(), Checkpoint::Kind::kHuggingFace);
  EXPECT_EQ(must(get_string(model->config(), "model_type")), "llama");
  EXPECT_EQ(must(run_now(model->read_text("chat_template.jinja"))), "{{ messages }}");
  std::ofstream(home / "m/tokenizer.json") << "{}";
  EXPECT_FALSE(must(run_now(model->read_text("tokenizer.json")))) << "the manifest does not name it";
  flip_byte(home / "m/chat_template.jinja", 3);
  EXPECT_FALSE(run_now(model->read_text("chat_template.jinja")));
}

}  // namespace
}  // namespace doppler::formats
