// MappedFile where the file changes under it.
#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/process.h"

namespace doppler {
namespace {

// Such a read ended the process: SIGBUS.
TEST(MappedFile, AFileCutWhileItIsReadIsASentence) {
  const std::string path = testing::TempDir() + "/cut." + std::to_string(process_id());
  const uint64_t page = MappedFile::page_bytes();
  for (const uint64_t kept : {page, 4 * page - 1}) {  // the second raises no signal
    std::ofstream(path, std::ios::binary) << std::string(4 * page, 'x');
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->check_whole());
    std::filesystem::resize_file(path, kept);
    const MappedFile moved = std::move(*file);
    const volatile uint8_t* bytes = moved.bytes().data();
    EXPECT_EQ(bytes[0], 'x');
    for (uint64_t at = kept; at < 4 * page; ++at) ASSERT_EQ(bytes[at], 0);
    const auto whole = moved.check_whole();
    ASSERT_FALSE(whole);
    EXPECT_NE(whole.error().message().find("was cut while it was read"), std::string::npos);
  }
  // One that was replaced is whole: the mapping has the old one.
  std::ofstream(path, std::ios::binary) << std::string(2 * page, 'x');
  const auto old = MappedFile::open(path);
  std::ofstream(path + ".new", std::ios::binary) << "x";
  std::filesystem::rename(path + ".new", path);
  EXPECT_EQ(old->bytes()[page], 'x');
  EXPECT_TRUE(old->check_whole());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace doppler
