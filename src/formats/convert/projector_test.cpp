// Folders that see become two GGUF files. llama.cpp's converter made the same of the tiny models of
// tests/data/vision.tar.xz: metadata and tensors are compared with its files, byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "formats/convert/convert_native.h"
#include "formats/convert/hf_to_projector.h"
#include "formats/file_set_native.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/projector/projector_config.h"
#include "formats/rdrr/test_models.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Checkpoint> open(const std::string& path) {
  return must(run_now(open_checkpoint(must(open_file_set(path)))));
}
std::string folder_of(const std::string& name) { return std::string(VISION_DIR "/") + name; }

// A field of metadata as its bytes, but for its key.
std::string value_of(const GgufFile& file, std::string_view key) {
  GgufHeader only;
  std::vector<std::string_view> others;
  for (const GgufFile::Entry& entry : file.metadata()) {
    if (entry.key != key) others.push_back(entry.key);
  }
  only.copy_metadata(file, others);
  const std::vector<uint8_t> bytes = only.build();
  return {bytes.begin(), bytes.end()};
}

class ProjectorOfFolder : public testing::TestWithParam<std::string> {
 protected:
  // Converts the case's folder, and returns the path of the tower's file.
  std::string convert() const {
    const auto model = open(folder_of(GetParam()));
    const auto parted = run_now(part_tower(*model, ""));
    EXPECT_TRUE(parted) << parted.error().sentence();
    must(convert_model(*model, home_ / "model.gguf", {.to = OutputKind::kGguf}));
    return home_ / "mmproj-model.gguf";
  }
  TemporaryFolder home_;
};

TEST_P(ProjectorOfFolder, MetadataAreThoseOfLlamaCpp) {
  const auto made = open(convert()), wanted = open(folder_of(GetParam()) + "/gguf/mmproj.gguf");
  std::set<std::string_view> keys;
  for (const GgufFile::Entry& entry : wanted->gguf()->metadata()) {
    if (entry.key == "general.size_label") continue;  // for people
    keys.insert(entry.key);
    EXPECT_TRUE(made->gguf()->find(entry.key)) << entry.key;
    EXPECT_EQ(value_of(*made->gguf(), entry.key), value_of(*wanted->gguf(), entry.key)) << entry.key;
  }
  for (const GgufFile::Entry& entry : made->gguf()->metadata()) {
    EXPECT_TRUE(keys.contains(entry.key) || entry.key == kProjectorPreprocessor) << entry.key;
  }
}

TEST_P(ProjectorOfFolder, TensorsAreThoseOfLlamaCpp) {
  const auto made = open(convert()), wanted = open(folder_of(GetParam()) + "/gguf/mmproj.gguf");
  EXPECT_EQ(made->tensors().size(), wanted->tensors().size());
  for (const TensorInfo& tensor : wanted->tensors()) {
    const TensorInfo* const found = made->find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(found->type, tensor.type) << tensor.name;
    EXPECT_EQ(must(run_now(made->read_tensor(*found))), must(run_now(wanted->read_tensor(tensor))))
        << tensor.name;
  }
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(VISION_DIR)) {
    if (fs::exists(entry.path() / "gguf")) names.push_back(entry.path().filename().string());
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Models, ProjectorOfFolder, testing::ValuesIn(cases()),
                         [](const auto& made) { return made.param; });

TEST(ProjectorOfFolder, TowersWithoutAPlaceInGgufAreRefusedByName) {
  for (const char* name : {"llava", "internvl", "paligemma2", "gemma4"}) {
    const auto model = open(folder_of(name));
    const auto parted = run_now(part_tower(*model, ""));
    ASSERT_FALSE(parted) << name;
    EXPECT_NE(parted.error().sentence().find("GGUF has no place for the vision tower of the model type"),
              std::string::npos)
        << parted.error().sentence();
  }
}

TEST(ProjectorOfFolder, VectorsAndPositionsAreF32) {
  const auto type = [](const char* name, std::vector<uint64_t> shape, DType from) {
    return projector_type(
        {.name = name, .type = from, .shape = std::move(shape), .file = 0, .offset = 0, .bytes = 0});
  };
  EXPECT_EQ(type("v.blk.0.attn_q.weight", {4, 4}, DType::kBF16), DType::kBF16);
  EXPECT_EQ(type("v.blk.0.attn_q.bias", {4}, DType::kBF16), DType::kF32);
  EXPECT_EQ(type("v.position_embd.weight", {4, 4}, DType::kF16), DType::kF32);
  EXPECT_EQ(type("v.patch_embd.weight.1", {4, 3, 2, 2}, DType::kBF16), DType::kF32);
  EXPECT_EQ(type("v.patch_embd.weight", {4, 3, 2, 2}, DType::kF16), DType::kF16);
  EXPECT_EQ(type("mm.input_projection.weight", {4, 4}, DType::kBF16), DType::kF16);
}

}  // namespace
}  // namespace doppler::formats
