// Files of a batch: lines of any length, and what a second run finds of the first.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/json.h"
#include "base/process.h"
#include "openai/batch_output.h"
#include "openai/line_reader.h"

namespace doppler::openai {
namespace {

class BatchFiles : public testing::Test {
 protected:
  BatchFiles() : path_(testing::TempDir() + "batch_files." + std::to_string(process_id())) {}
  ~BatchFiles() override { std::remove(path_.c_str()); }

  void put(std::string_view text) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    ASSERT_TRUE(file);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  std::string content() const {
    std::string out;
    std::FILE* file = std::fopen(path_.c_str(), "rb");
    for (int c; file && (c = std::fgetc(file)) != EOF;) out += static_cast<char>(c);
    if (file) std::fclose(file);
    return out;
  }
  // Numbers and texts of the lines.
  std::string lines() const {
    auto reader = LineReader::open(path_);
    std::string out;
    while (auto line = reader->next().value()) {
      out += std::to_string(line->number) + ":" + line->text + (line->is_whole ? ";" : "(torn)");
    }
    return out;
  }
  std::string claims(std::initializer_list<const char*> ids) const {
    auto output = BatchOutput::open(path_);
    if (!output) return output.error().sentence();
    std::string out;
    uint64_t number = 0;
    for (const char* id : ids) {
      const auto claim = output->claim(++number, id ? std::optional<std::string>(id) : std::nullopt);
      out += claim == BatchOutput::Claim::kNew ? 'n' : claim == BatchOutput::Claim::kDone ? 'd' : '2';
    }
    return out;
  }

  const std::string path_;
};

TEST_F(BatchFiles, LinesAreNumberedAndEmptyOnesLeftOut) {
  put("a\n\n  \r\nb\r\nc");
  EXPECT_EQ(lines(), "1:a;4:b\r;5:c(torn)");
  put("");
  EXPECT_EQ(lines(), "");
  put("\n\n ");
  EXPECT_EQ(lines(), "");
}

TEST_F(BatchFiles, LinesMayBeLongerThanTheBuffer) {
  const std::string longest(1 << 20, 'x');
  put(longest + "\n" + longest);
  EXPECT_EQ(lines(), "1:" + longest + ";2:" + longest + "(torn)");
  auto reader = LineReader::open(path_);
  EXPECT_EQ(count_lines(*reader).value(), 2u);
  EXPECT_EQ(reader->next().value()->number, 1u) << "counting goes back to the beginning";
  EXPECT_EQ(reader->next().value()->begin, longest.size() + 1);
}

TEST_F(BatchFiles, ALineWithoutEndTakesNoMemory) {
  put(std::string(kMaxLineBytes + 1, 'x') + "\nb\n");
  auto reader = LineReader::open(path_);
  const auto line = reader->next().value();
  EXPECT_TRUE(line->is_too_long);
  EXPECT_EQ(line->text.size(), 0u);
  EXPECT_EQ(reader->next().value()->text, "b");
}

TEST_F(BatchFiles, FoldersAndMissingFilesAreNoInput) {
  EXPECT_FALSE(LineReader::open(path_));
  EXPECT_FALSE(LineReader::open("/"));
  EXPECT_FALSE(LineReader::open("/dev/zero"));
}

TEST_F(BatchFiles, WhatIsWrittenIsNotDoneAgain) {
  {
    auto output = BatchOutput::open(path_);
    ASSERT_TRUE(output);
    EXPECT_FALSE(BatchOutput::open(path_)) << "one program at a time";
    EXPECT_TRUE(output->write(answer_line(2, "b", Json::object())));
    EXPECT_TRUE(output->write(error_line(3, "c", kInvalidRequest, "no")));
    EXPECT_TRUE(output->write(error_line(4, std::nullopt, kInvalidRequest, "no id")));
    EXPECT_TRUE(output->write(error_line(5, "a", kDuplicateId, "again")));
    EXPECT_TRUE(output->sync());
  }
  // The first "a" was under way when the run ended; the second has its error.
  EXPECT_EQ(claims({"a", "b", "c", nullptr, "a", nullptr, "b"}), "nddddn2");
  // Ids count, not places; if a line has no id, its place counts.
  EXPECT_EQ(claims({"x", "c", "b"}), "ndd");
}

TEST_F(BatchFiles, ATornLastLineIsCutOff) {
  const std::string whole = answer_line(1, "a", Json::object());
  const std::string second = answer_line(2, "b", Json::object());
  for (size_t length = 0; length < second.size(); ++length) {
    put(whole + second.substr(0, length));
    EXPECT_EQ(claims({"a", "b"}), "dn") << length;
    EXPECT_EQ(content(), whole) << length;
  }
  put(whole + second);
  EXPECT_EQ(claims({"a", "b"}), "dd");
}

TEST_F(BatchFiles, AnotherFileIsLeftAsItIs) {
  for (const std::string& text :
       {std::string("notes\n"), std::string("notes"), std::string("{\"custom_id\": \"a\"}"),
        answer_line(1, "a", Json::object()) + "{}\n"}) {
    put(text);
    EXPECT_NE(claims({"a"}).find("is no answer of a batch"), std::string::npos) << text;
    EXPECT_EQ(content(), text);
  }
}

}  // namespace
}  // namespace doppler::openai
