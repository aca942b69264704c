// Every byte of an RDRR folder is under a hash: flips anywhere are found and the file is named, and damaged files
// are replaced from another copy.
#include <gtest/gtest.h>

#include <random>

#include "formats/rdrr/folder_check_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/rdrr/write_progress_native.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

constexpr int kFlips = 10'000;

// A model whose files are all of a like size, so that flips reach every file.
void make_model(const std::string& folder) {
  const auto writer = must_open(folder);
  ASSERT_TRUE(writer->add_asset("tokenizer.json", bytes_of_text(std::string(1500, 't'))));
  ASSERT_TRUE(writer->add_asset("chat_template.jinja", bytes_of_text("{{ messages }}")));
  finish_small(*writer);
}

TEST(RdrrFolderCheck, AWholeFolderHasNoFaults) {
  const TemporaryFolder home;
  make_model(home / "m");
  const auto check = must(check_rdrr_folder(home / "m", 2, {}));
  EXPECT_TRUE(check.intact());
  EXPECT_TRUE(check.others.empty());
  std::ofstream(home / "m/diary.txt") << "dear diary";
  EXPECT_EQ(must(check_rdrr_folder(home / "m", 0, {})).others, std::vector<std::string>{"diary.txt"});
  EXPECT_FALSE(check_rdrr_folder(home / "nowhere", 0, {}));
}

TEST(RdrrFolderCheck, TenThousandFlippedBitsAreEachFoundInTheirFile) {
  const TemporaryFolder home;
  make_model(home / "m");
  const std::vector<std::string> names = must(names_in_folder(home / "m"));
  std::mt19937_64 random(20260101);
  int unnamed = 0;
  for (int flip = 0; flip < kFlips; ++flip) {
    const std::string& name = names[static_cast<size_t>(flip) % names.size()];
    const std::string path = home / ("m/" + name);
    const uint64_t offset = random() % fs::file_size(path);
    const auto bit = static_cast<uint8_t>(1u << random() % 8);
    flip_byte(path, offset, bit);
    const auto check = must(check_rdrr_folder(home / "m", 1, {}));
    const bool found = check.faults.size() == 1 && check.faults[0].file == name &&
                       check.faults[0].problem.find(name) != std::string::npos;
    if (!found) {
      ++unnamed;
      ADD_FAILURE() << name << " at " << offset << " bit " << int{bit} << ": " << check.faults.size()
                    << " faults";
    }
    flip_byte(path, offset, bit);
  }
  EXPECT_EQ(unnamed, 0);
  EXPECT_TRUE(must(check_rdrr_folder(home / "m", 1, {})).intact());
}

TEST(RdrrFolderCheck, FilesThatAreCutGrownOrMissingAreNamed) {
  const TemporaryFolder home;
  for (const std::string name : {"manifest.json", "shard_00003.bin", "tokenizer.json"}) {
    for (const int change : {-1, 0, 1}) {
      make_model(home / "m");
      const std::string path = home / ("m/" + name);
      if (change == 0) {
        fs::remove(path);
      } else {
        fs::resize_file(path, static_cast<uintmax_t>(static_cast<intmax_t>(fs::file_size(path)) + change));
      }
      const auto check = must(check_rdrr_folder(home / "m", 1, {}));
      ASSERT_EQ(check.faults.size(), 1u) << name << change;
      EXPECT_EQ(check.faults[0].file, name);
      fs::remove_all(home / "m");
    }
  }
}

TEST(RdrrFolderCheck, RepairReplacesOnlyWhatIsDamaged) {
  const TemporaryFolder home;
  make_model(home / "good");
  make_model(home / "m");
  const auto before = fs::last_write_time(home / "m/shard_00000.bin");
  flip_byte(home / "m/shard_00002.bin", 17);
  fs::remove(home / "m/tokenizer.json");
  const auto check = must(check_rdrr_folder(home / "m", 1, {}));
  const auto repair = must(repair_rdrr_folder(home / "m", check, fetch_from_folder(home / "good")));
  EXPECT_EQ(repair.replaced, (std::vector<std::string>{"tokenizer.json", "shard_00002.bin"}));
  EXPECT_TRUE(repair.left.empty());
  EXPECT_TRUE(must(check_rdrr_folder(home / "m", 1, {})).intact());
  EXPECT_EQ(fs::last_write_time(home / "m/shard_00000.bin"), before);
}

TEST(RdrrFolderCheck, RepairTakesNothingThatIsDamagedItself) {
  const TemporaryFolder home;
  make_model(home / "source");
  make_model(home / "m");
  flip_byte(home / "source/shard_00002.bin", 3);
  flip_byte(home / "m/shard_00002.bin", 17);
  const auto damaged = read_file(home / "m/shard_00002.bin");
  const auto check = must(check_rdrr_folder(home / "m", 1, {}));
  const auto repair = must(repair_rdrr_folder(home / "m", check, fetch_from_folder(home / "source")));
  EXPECT_TRUE(repair.replaced.empty());
  ASSERT_EQ(repair.left.size(), 1u);
  EXPECT_EQ(repair.left[0].file, "shard_00002.bin");
  EXPECT_EQ(read_file(home / "m/shard_00002.bin"), damaged);
  EXPECT_TRUE(must(check_rdrr_folder(home / "m", 1, {})).others.empty()) << "what was fetched is gone again";
}

TEST(RdrrFolderCheck, ADamagedManifestIsReplacedFirst) {
  const TemporaryFolder home;
  make_model(home / "good");
  make_model(home / "m");
  flip_byte(home / "m/manifest.json", 40);
  flip_byte(home / "m/shard_00001.bin", 9);
  for (const char* file : {"manifest.json", "shard_00001.bin"}) {
    const auto check = must(check_rdrr_folder(home / "m", 1, {}));
    ASSERT_EQ(check.faults.size(), 1u);
    EXPECT_EQ(check.faults[0].file, file);
    EXPECT_EQ(must(repair_rdrr_folder(home / "m", check, fetch_from_folder(home / "good"))).replaced,
              std::vector<std::string>{file});
  }
  EXPECT_TRUE(must(check_rdrr_folder(home / "m", 1, {})).intact());
}

}  // namespace
}  // namespace doppler::formats
