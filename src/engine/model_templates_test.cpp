// The chat templates of a checkpoint, and the choice for a conversation.
#include "engine/model_templates.h"

#include <gtest/gtest.h>

#include "formats/gguf/gguf_writer.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"

namespace doppler::engine {
namespace {

using formats::bytes_of_text;
using formats::must;
using formats::run_now;
using Files = formats::MemoryFileSet::Files;

Result<ModelTemplates> load(Files files, std::string main_file, std::string given = "") {
  static uint64_t ignored = 0;
  const auto checkpoint = must(run_now(formats::open_checkpoint(
      std::make_unique<formats::MemoryFileSet>(std::move(files), std::move(main_file), &ignored))));
  return run_now(load_templates(*checkpoint, std::move(given)));
}

// A folder with one tensor and these files.
Result<ModelTemplates> load_folder(Files more, std::string given = "") {
  const std::vector<uint8_t> zeros(4);
  formats::MemorySink weights;
  const formats::SafetensorsItem item{"x", DType::kF32, {1}, zeros};
  EXPECT_TRUE(formats::write_safetensors({&item, 1}, {}, weights));
  more["config.json"] = bytes_of_text(R"({"model_type": "llama"})");
  more["model.safetensors"] = weights.bytes();
  return load(std::move(more), "", std::move(given));
}

constexpr const char* kListed = R"({"chat_template": [{"name": "default", "template": "plain"},
    {"name": "tool_use", "template": "{{ tools }}"}, {"name": "rag", "template": "{{ documents }}"}]})";

TEST(ModelTemplates, AListNamesThem) {
  const auto found = load_folder({{"tokenizer_config.json", bytes_of_text(kListed)}});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->choose(false, false).source, "plain");
  EXPECT_EQ(found->choose(true, false).source, "{{ tools }}");
  EXPECT_EQ(found->choose(false, true).source, "{{ documents }}");
  EXPECT_TRUE(found->choose(true, false).parsed->mentions("tools"));
}

TEST(ModelTemplates, FoldersHaveThemAsFiles) {
  for (const char* folder : {"additional_chat_templates", "chat_templates"}) {
    const auto found = load_folder({{"chat_template.jinja", bytes_of_text("plain")},
                                    {std::string(folder) + "/tool_use.jinja", bytes_of_text("{{ tools }}")}});
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->choose(true, true).source, "{{ tools }}");
    EXPECT_EQ(found->choose(false, true).source, "plain") << "there is none for documents";
  }
}

TEST(ModelTemplates, GgufHasAKeyForEach) {
  formats::GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_string("tokenizer.chat_template", "plain");
  header.add_string("tokenizer.chat_template.tool_use", "{{ tools }}");
  const auto found = load({{"m.gguf", header.build()}}, "m.gguf");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->choose(false, false).source, "plain");
  EXPECT_EQ(found->choose(true, false).source, "{{ tools }}");
}

TEST(ModelTemplates, OneThatIsGivenReplacesAll) {
  const auto found = load_folder({{"tokenizer_config.json", bytes_of_text(kListed)}}, "given");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->choose(true, false).source, "given");
  EXPECT_FALSE(load_folder({}, "{% if %}")) << "it does not parse";
}

TEST(ModelTemplates, OneThatDoesNotParseIsNotChosen) {
  const auto found = load_folder({{"chat_template.jinja", bytes_of_text("plain")},
                                  {"chat_templates/tool_use.jinja", bytes_of_text("{% if %}")}});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->choose(true, false).source, "plain");
}

}  // namespace
}  // namespace doppler::engine
