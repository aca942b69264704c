// folders.h in a folder of its own, whose names are not ASCII.
#include "base/folders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace doppler {
namespace {

class FoldersTest : public testing::Test {
 protected:
  FoldersTest() : folder_(make_temporary_folder("doppler-Ordner-モデル-")) {}
  ~FoldersTest() override { remove_tree(folder_); }
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }
  void make(const std::string& name, std::string_view text) const {
    OpenFile file = OpenFile::open(*this / name, kToWriteNew);
    EXPECT_TRUE(file && file.write(text) && file.close()) << name;
  }
  const std::string folder_;
};

TEST_F(FoldersTest, AreMadeWithAllAboveThem) {
  EXPECT_TRUE(make_folders(*this / "größer/模型/a b"));
  EXPECT_TRUE(is_folder(*this / "größer/模型/a b"));
  EXPECT_TRUE(make_folders(*this / "größer/模型")) << "it is there";
  make("ß", "x");
  EXPECT_FALSE(make_folders(*this / "ß"));
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_FALSE(make_folders(*this / "ß/inner"));
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_F(FoldersTest, FilesHaveSizesAndFoldersNot) {
  make("größe", "12345");
  EXPECT_EQ(file_bytes(*this / "größe"), 5u);
  EXPECT_TRUE(is_regular_file(*this / "größe") && !is_folder(*this / "größe"));
  EXPECT_TRUE(is_folder(folder_) && !is_regular_file(folder_));
  EXPECT_FALSE(file_bytes(folder_));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_FALSE(file_bytes(*this / "keine größe"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(is_folder(*this / "nichts") || is_regular_file(*this / "nichts"));
}

TEST_F(FoldersTest, FilesAreCopiedAndLinked) {
  make("文", "text");
  EXPECT_TRUE(copy_file(*this / "文", *this / "abschrift ä", /*replaces=*/false));
  EXPECT_EQ(file_bytes(*this / "abschrift ä"), 4u);
  make("文", "another text");
  EXPECT_FALSE(copy_file(*this / "文", *this / "abschrift ä", /*replaces=*/false));
  EXPECT_EQ(errno, EEXIST);
  EXPECT_TRUE(copy_file(*this / "文", *this / "abschrift ä", /*replaces=*/true));
  EXPECT_EQ(file_bytes(*this / "abschrift ä"), 12u);
  ASSERT_TRUE(link_file(*this / "文", *this / "zweiter name"));
  EXPECT_TRUE(facts_of(*this / "文")->is_same_file(*facts_of(*this / "zweiter name")));
  EXPECT_FALSE(link_file(*this / "文", *this / "zweiter name"));
}

TEST_F(FoldersTest, AreWalkedAsFarAsAsked) {
  make_folders(*this / "außen/innen");
  make_folders(*this / "zu");
  make("außen/innen/tief", "x");
  make("zu/nie", "x");
  make("datei", "x");
  std::vector<std::string> seen;
  EXPECT_TRUE(walk_folder(folder_, [&](const FoundName& found) {
    seen.push_back(found.path + (found.kind == FileKind::kFolder ? "/" : ""));
    return found.path != "zu";
  }));
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::string>{"außen/", "außen/innen/", "außen/innen/tief", "datei", "zu/"}));
  std::vector<std::string> names;
  EXPECT_TRUE(list_folder(*this / "außen", names));
  EXPECT_EQ(names, std::vector<std::string>{"innen"});
  EXPECT_FALSE(list_folder(*this / "fehlt", names));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(list_folder("", names));
}

TEST_F(FoldersTest, AreRemovedWithAllInThem) {
  make_folders(*this / "außen/innen");
  make("außen/innen/tief", "x");
  make("außen/文", "x");
  EXPECT_TRUE(remove_tree(*this / "außen"));
  EXPECT_FALSE(is_there(*this / "außen"));
  EXPECT_TRUE(remove_tree(*this / "außen")) << "there is nothing";
  make("datei", "x");
  EXPECT_TRUE(remove_tree(*this / "datei"));
  EXPECT_FALSE(is_there(*this / "datei"));
}

// Windows has a shorter limit for paths that are not given in its long form.
TEST_F(FoldersTest, PathsMayBeLong) {
  std::string deep = "tief";
  while (deep.size() < 400) deep += "/ein langer name für einen ordner";
  ASSERT_TRUE(make_folders(*this / deep));
  make(deep + "/文", "text");
  EXPECT_TRUE(copy_file(*this / (deep + "/文"), *this / (deep + "/zwei"), /*replaces=*/false));
  EXPECT_TRUE(rename_path(*this / (deep + "/zwei"), *this / (deep + "/drei")));
  std::vector<std::string> names;
  EXPECT_TRUE(list_folder(*this / deep, names));
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"drei", "文"}));
  EXPECT_TRUE(remove_tree(*this / "tief"));
  EXPECT_FALSE(is_there(*this / "tief"));
}

TEST(PathTexts, AreTakenApartAndPutTogether) {
  struct Row {
    const char *path, *parent, *name, *stem;
  };
  for (const Row& row : {Row{"größer/模型.gguf", "größer", "模型.gguf", "模型"}, Row{"a/", "a", "", ""},
                         Row{"b.tar.xz", "", "b.tar.xz", "b.tar"}, Row{"a/.c", "a", ".c", ".c"},
                         Row{"/", "/", "", ""}, Row{"/ü", "/", "ü", "ü"}, Row{"", "", "", ""}}) {
    EXPECT_EQ(parent_path(row.path), row.parent) << row.path;
    EXPECT_EQ(file_name(row.path), row.name) << row.path;
    EXPECT_EQ(file_stem(row.path), row.stem) << row.path;
  }
  EXPECT_EQ(joined_path("größer", "模型"), "größer/模型");
  EXPECT_EQ(joined_path("a/", "b"), "a/b");
  EXPECT_EQ(joined_path("", "b"), "b");
  EXPECT_EQ(normal_path("ä/../b//c/."), "b/c/");
}

}  // namespace
}  // namespace doppler
