// A request's path opens files in the served folder, and none that is hidden, unfinished or outside.
#include "store/served_file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace doppler::store {
namespace {

namespace fs = std::filesystem;

class ServedFileTest : public testing::Test {
 protected:
  ServedFileTest() : folder_(make_temporary_folder("doppler-served-test-")) {
    fs::create_directories(folder_ + "/served/model");
    fs::create_directories(folder_ + "/served/.git");
    for (const char* name : {"secret", "served/a.gguf", "served/model/b.bin", "served/.git/config",
                             "served/c.part", "served/d.journal", "served/e f"}) {
      EXPECT_TRUE(OpenFile::open(folder_ + "/" + name, kToWriteNew).write(std::string_view(name)));
    }
    root_ = *served_root(folder_ + "/served");
  }
  ~ServedFileTest() override { fs::remove_all(folder_); }
  std::optional<std::string> content(std::string_view path) const {
    const auto served = open_served(root_, path);
    if (!served) return {};
    std::string text(served->bytes, '\0');
    const auto count = served->file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0);
    return count && *count == text.size() ? std::optional(text) : std::nullopt;
  }
  const std::string folder_;
  std::string root_;
};

TEST_F(ServedFileTest, GivesFilesInside) {
  EXPECT_EQ(content("/a.gguf"), "served/a.gguf");
  EXPECT_EQ(content("/model/b.bin"), "served/model/b.bin");
  EXPECT_EQ(content("/e%20f"), "served/e f");
}

TEST_F(ServedFileTest, GivesNothingElse) {
  for (const char* path :
       {"", "/", "a.gguf", "/model", "/model/", "/none", "/../secret", "/%2e%2e/secret", "/model/../a.gguf",
        "/model//b.bin", "/./a.gguf", "/.git/config", "/%2egit/config", "/c.part", "/d.journal", "/a.gguf/",
        "/a.gguf%00", "/..%2fsecret", "/model%5c..%5c..%5csecret"})
    EXPECT_FALSE(content(path)) << path;
  EXPECT_FALSE(served_root(folder_ + "/secret"));
  EXPECT_FALSE(served_root(folder_ + "/none"));
}

TEST_F(ServedFileTest, FollowsLinksOnlyInside) {
  std::error_code error;
  fs::create_symlink("a.gguf", folder_ + "/served/inside", error);
  if (error) GTEST_SKIP() << "this user may make no links";
  fs::create_symlink("../secret", folder_ + "/served/outside", error);
  fs::create_directory_symlink("..", folder_ + "/served/up", error);
  fs::create_symlink(".git/config", folder_ + "/served/hidden", error);
  EXPECT_EQ(content("/inside"), "served/a.gguf");
  for (const char* path : {"/outside", "/up/secret", "/up/served/a.gguf/..", "/hidden"})
    EXPECT_FALSE(content(path)) << path;
}

TEST_F(ServedFileTest, TagsChangeWithTheFile) {
  const auto before = open_served(root_, "/a.gguf");
  ASSERT_TRUE(before);
  EXPECT_TRUE(OpenFile::open(folder_ + "/served/a.gguf", kToWriteNew).write("longer than before"));
  const auto after = open_served(root_, "/a.gguf");
  ASSERT_TRUE(after);
  EXPECT_NE(before->etag, after->etag);
  EXPECT_EQ(after->bytes, 18u);
}

}  // namespace
}  // namespace doppler::store
