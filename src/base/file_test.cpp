// file.h on a folder of its own, own_folders_native.h and shared_library.h.
#include "base/file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/folders.h"
#include "base/own_folders_native.h"
#include "base/process.h"
#include "base/shared_library.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() : folder_(make_temporary_folder("doppler-file-test-")) {}
  ~FileTest() override { remove_tree(folder_); }
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }
  void make(const std::string& name, std::string_view text) const {
    OpenFile file = OpenFile::open(*this / name, kToWriteNew);
    EXPECT_TRUE(file && file.write(text) && file.close());
  }
  std::string read(const std::string& name) const {
    const OpenFile file = OpenFile::open(*this / name);
    std::string text(100, '\0');
    const auto count =
        file ? file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0) : std::nullopt;
    text.resize(count.value_or(0));
    return text;
  }
  const std::string folder_;
};

TEST_F(FileTest, WritesReadsAndResizes) {
  make("a", "one two");
  EXPECT_EQ(read("a"), "one two");
  OpenFile file = OpenFile::open(*this / "a", kToReadAndWrite);
  const std::string three = "3";
  ASSERT_TRUE(file.write_at({reinterpret_cast<const uint8_t*>(three.data()), 1}, 9));
  EXPECT_EQ(read("a"), std::string("one two\0\0003", 10));
  ASSERT_TRUE(file.resize(3) && file.flush() && file.flush_content());
  EXPECT_EQ(file.facts()->bytes, 3u);
  OpenFile at_end = OpenFile::open(*this / "a", {.writes = true, .appends = true});
  ASSERT_TRUE(at_end.write("!") && at_end.write("?"));
  EXPECT_EQ(read("a"), "one!?");
  EXPECT_EQ(facts_of(*this / "a")->kind, FileKind::kRegular);
  EXPECT_EQ(facts_of(folder_)->kind, FileKind::kFolder);
}

TEST_F(FileTest, LeavesTheReasonInErrno) {
  EXPECT_FALSE(OpenFile::open(*this / "none"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(facts_of(*this / "none"));
  EXPECT_EQ(errno, ENOENT);
  make("a", "x");
  EXPECT_FALSE(OpenFile::open(*this / "a", kToReadFolder));
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_F(FileTest, TellsFilesApart) {
  make("a", "x");
  make("b", "x");
  const auto a = facts_of(*this / "a");
  EXPECT_TRUE(a->is_same_file(*OpenFile::open(*this / "a").facts()));
  EXPECT_FALSE(a->is_same_file(*facts_of(*this / "b")));
  EXPECT_GT(a->modified_ns, int64_t{1'600'000'000} * 1'000'000'000);
  std::string name;
  OpenFile beside = OpenFile::make_beside(*this / "a", name);
  ASSERT_TRUE(beside);
  EXPECT_TRUE(name.starts_with(*this / "a") && is_there(name));
}

TEST_F(FileTest, NamesMoveWhileFilesAreOpen) {
  make("a", "new");
  make("b", "old");
  const OpenFile open = OpenFile::open(*this / "a");
  ASSERT_TRUE(rename_path(*this / "a", *this / "b"));
  EXPECT_EQ(read("b"), "new");
  EXPECT_FALSE(is_there(*this / "a"));
  fs::create_directories(*this / "one");
  fs::create_directories(*this / "other");
  make("one/file", "1");
  ASSERT_TRUE(exchange_folders(*this / "one", *this / "other"));
  EXPECT_EQ(read("other/file"), "1");
  EXPECT_FALSE(is_there(*this / "one/file"));
  EXPECT_TRUE(flush_folder(folder_));
  EXPECT_TRUE(remove_file(*this / "b"));
  EXPECT_FALSE(remove_file(*this / "b"));
}

TEST_F(FileTest, OneHolderHasTheLock) {
  OpenFile first = OpenFile::open(*this / "lock", kToReadAndWrite);
  ASSERT_TRUE(first.lock());
  OpenFile second = OpenFile::open(*this / "lock", kToReadAndWrite);
  EXPECT_FALSE(second.lock());
  EXPECT_EQ(errno, EWOULDBLOCK);
  ASSERT_TRUE(first.write("content"));
  EXPECT_EQ(read("lock"), "content") << "who has not the lock reads";
  first.close();
  EXPECT_TRUE(second.lock());
}

TEST_F(FileTest, LinksAreRefusedOnRequest) {
  make("a", "x");
  fs::create_directories(*this / "inner");
  make("inner/b", "y");
  std::error_code error;
  fs::create_symlink(*this / "a", *this / "inner/link", error);
  if (error) GTEST_SKIP() << "this user may make no links";
  fs::create_directory_symlink(*this / "inner", *this / "folder-link", error);
  EXPECT_TRUE(OpenFile::open(*this / "inner/link"));
  EXPECT_FALSE(OpenFile::open(*this / "inner/link", {.follows_links = false}));
  EXPECT_EQ(errno, ELOOP);
  const OpenFile root = OpenFile::open(folder_, kToReadFolder);
  const OpenMode careful{.follows_links = false, .waits = false};
  const OpenMode careful_folder{.follows_links = false, .is_folder = true, .waits = false};
  const OpenFile inner = OpenFile::open_at(root, "inner", careful_folder);
  ASSERT_TRUE(inner);
  EXPECT_TRUE(OpenFile::open_at(inner, "b", careful));
  EXPECT_FALSE(OpenFile::open_at(inner, "link", careful));
  EXPECT_FALSE(OpenFile::open_at(root, "folder-link", careful_folder));
  EXPECT_FALSE(OpenFile::open_at(root, "a", careful_folder));
  EXPECT_EQ(*real_path(*this / "inner/link"), *real_path(*this / "a"));
}

TEST_F(FileTest, PrivateFoldersKeepOthersOut) {
  ASSERT_TRUE(make_private_folder(*this / "mine"));
  EXPECT_TRUE(make_private_folder(*this / "mine")) << "it is there";
  EXPECT_TRUE(is_private_folder(*this / "mine"));
  fs::permissions(*this / "mine", fs::perms::all);
#ifndef _WIN32  // its rights are none of those that fs::permissions() sets
  EXPECT_FALSE(is_private_folder(*this / "mine"));
#endif
  make("file", "x");
  EXPECT_FALSE(make_private_folder(*this / "file"));
  EXPECT_TRUE(is_private_folder(folder_));
  EXPECT_GT(free_disk_bytes(folder_).value_or(0), 0u);
}

TEST_F(FileTest, NamesOutsideOfAsciiAreUtf8) {
  make("Ümläut 模型", "x");
  std::vector<std::string> names;
  EXPECT_TRUE(list_folder(folder_, names));
  EXPECT_EQ(names, std::vector<std::string>{"Ümläut 模型"});
  EXPECT_EQ(read("Ümläut 模型"), "x");
  std::FILE* file = open_stdio(*this / "Ümläut 模型", "rb");
  ASSERT_TRUE(file);
  std::fclose(file);
}

TEST(FileNames, LeadNowhereElse) {
  for (const char* name : {"a", "a.gguf", ".hidden", "a b"}) EXPECT_TRUE(is_one_name(name)) << name;
  for (const char* name : {"", ".", "..", "a/b", "/"}) EXPECT_FALSE(is_one_name(name)) << name;
  EXPECT_FALSE(is_one_name(std::string_view("a\0b", 3)));
  EXPECT_TRUE(are_names("1_Pooling/config.json") && are_names("a"));
  EXPECT_FALSE(are_names("a/../b") || are_names("a//b") || are_names("/a") || are_names("a/"));
}

TEST(OwnFolders, AreThere) {
  EXPECT_TRUE(fs::is_directory(program_folder()));
  EXPECT_TRUE(fs::equivalent(own_folder(), program_folder())) << "the test is one file";
  EXPECT_FALSE(user_folder(UserFolder::kCache).empty());
  EXPECT_TRUE(user_folder(UserFolder::kConfig).ends_with("/doppler"));
}

TEST(SharedLibraries, AreOpenedOrRefusedWithAReason) {
  std::string reason;
  EXPECT_FALSE(SharedLibrary::open("libdoppler_no_such_library.so", reason));
  EXPECT_FALSE(reason.empty());
}

TEST(Processes, KnowThemselves) {
  EXPECT_NE(process_id(), 0u);
  EXPECT_GT(machine_memory_bytes(), uint64_t{64} << 20);
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_GE(raise_open_files(1), 1u);
}

}  // namespace
}  // namespace doppler
