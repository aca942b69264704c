// Models that see against references by Hugging Face transformers (float32, CPU, tiny random models of published
// families): the tower's rows, the logits of prompts with pictures, in pieces too, greedy tokens through the cache.
// Cases are folders of tests/data/vision.tar.xz; their pictures are in images.tar.xz. A case CASE/gguf is the same
// model as llama.cpp's converter writes it: a GGUF file with the text model, and its mmproj beside it. A case
// CASE/converted is the same as our own converter writes it. The case of vision_pan_and_scan.tar.xz cuts its pictures.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/json.h"
#include "base/log.h"
#include "choice_checks.h"
#include "engine/image_prompt.h"
#include "engine/loaded_model.h"
#include "engine/score.h"
#include "formats/convert/convert_native.h"
#include "formats/convert/hf_to_projector.h"
#include "golden_helpers.h"
#include "images/decode_native.h"
#include "model/image_numbers.h"
#include "one_answer.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

images::Picture picture(const std::string& name) {
  const auto decoded = images::decode_picture(read_bytes(fs::path(IMAGES_DIR) / "images" / name));
  EXPECT_TRUE(decoded) << decoded.error().message();
  return decoded ? *decoded : images::Picture{};
}

constexpr std::string_view kPanAndScan = "gemma3_pan_and_scan";
constexpr std::string_view kGguf = "/gguf", kConverted = "/converted";

// A GGUF pair that the converter makes of a folder, once a process.
std::string converted(const std::string& folder) {
  const fs::path home =
      fs::path(testing::TempDir()) / ("doppler-pair-" + fs::path(folder).filename().string());
  static std::set<std::string> made;
  const std::string out = (home / "text.gguf").string();
  if (!made.insert(folder).second) return out;
  fs::remove_all(home);
  fs::create_directories(home);
  auto files = formats::open_file_set(folder);
  EXPECT_TRUE(files) << files.error().message();
  auto model = gpu::run_to_completion(device(), formats::open_checkpoint(std::move(*files)));
  EXPECT_TRUE(model) << model.error().message();
  const auto parted = gpu::run_to_completion(device(), formats::part_tower(**model, ""));
  EXPECT_TRUE(parted) << parted.error().message();
  const auto done = formats::convert_model(**model, out, {.to = formats::OutputKind::kGguf});
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

class VisionModel : public testing::TestWithParam<std::string> {
 protected:
  static bool is_gguf() { return GetParam().find('/') != std::string::npos; }
  static std::string model() {
    if (GetParam().ends_with(kConverted)) return converted(folder());
    return is_gguf() ? folder() + "/gguf/text.gguf" : folder();
  }
  // The folder of the references.
  static std::string folder() {
    const std::string name = GetParam().substr(0, GetParam().find('/'));
    return (name == kPanAndScan ? PAN_AND_SCAN_DIR "/" : VISION_DIR "/") + name;
  }
  // The tolerance of rows and logits. Both converters store Gemma 3's projection in f16.
  static double tolerance() { return is_gguf() && GetParam().starts_with("gemma3") ? 1e-3 : kExactTolerance; }
  static std::unique_ptr<engine::LoadedModel> load(bool all_logits, uint32_t chunk = 128,
                                                   model::RunnerOptions options = exact()) {
    options.ctx_len = 256;
    options.chunk = chunk;
    options.all_logits = all_logits;
    options.images = true;
    options.pan_and_scan = GetParam().starts_with(kPanAndScan);
    auto files = formats::open_file_set(model());
    EXPECT_TRUE(files) << files.error().message();
    auto loaded = gpu::run_to_completion(
        device(), engine::load_model(device(), std::move(*files), std::move(options), {}, {}));
    EXPECT_TRUE(loaded) << loaded.error().message();
    return loaded ? std::move(*loaded) : nullptr;
  }

  static model::RunnerOptions exact() {
    return {.policy = *kernels::make_policy("exact"), .cache_format = kernels::CacheFormat::kF32};
  }

  // A prompt's tokens, with the numbers of its pictures' tokens.
  struct Prompt {
    std::string name;
    engine::HeldImages images;
    std::vector<uint32_t> tokens;
  };
  static std::vector<Prompt> prompts(engine::LoadedModel& loaded, const References& refs) {
    const std::vector<uint8_t> bytes = read_bytes(folder() + "/prompts.json");
    const Json json =
        *parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "prompts.json");
    std::vector<Prompt> out;
    model::ImageStore& store = *loaded.runner->images();
    model::ImageNumbers numbers(store.encoder().rules(), store.capacity());
    for (const auto& item : json.items()) {
      Prompt prompt{.name = item.key, .images = {}, .tokens = refs.get<uint32_t>(item.key + ".input_ids")};
      for (const Json& message : item.value["messages"]) {
        for (const Json& part : message["content"]) {
          if (part["type"] != "image") continue;
          auto prepared = images::prepare_image(loaded.text.images->rules, picture(part["image"].text()));
          EXPECT_TRUE(prepared) << prepared.error().message();
          if (!prepared) continue;
          const std::string key = model::image_key(*prepared);
          auto held = numbers.add(std::move(*prepared), key);
          EXPECT_TRUE(held) << held.error().message();
          if (!held) continue;
          prompt.images.push_back(std::move(*held));
        }
      }
      auto placed = engine::place_images(*loaded.text.images, prompt.tokens, prompt.images, numbers);
      EXPECT_TRUE(placed) << placed.error().message();
      if (placed) prompt.tokens = std::move(*placed);
      for (const auto& image : prompt.images) store.take(image);
      out.push_back(std::move(prompt));
    }
    return out;
  }

  // Pieces of a prompt are short, but for rows that see each other.
  static uint32_t small_chunk() {
    const bool is_seen_whole = GetParam() == "gemma4_bidirectional" || GetParam() == "paligemma2";
    return is_seen_whole ? 72 : 24;
  }

  // Columns [column, column + n) of rows.
  static std::vector<float> columns(std::span<const float> rows, size_t stride, size_t column, size_t n) {
    std::vector<float> out;
    for (size_t at = column; at < rows.size(); at += stride) {
      out.insert(out.end(), rows.begin() + static_cast<ptrdiff_t>(at),
                 rows.begin() + static_cast<ptrdiff_t>(at + n));
    }
    return out;
  }
};

// The template's text with expanded marks has the processor's ids.
TEST_P(VisionModel, MarksExpandToTheReferencesIds) {
  const auto loaded = load(/*all_logits=*/true);
  ASSERT_TRUE(loaded && loaded->text.images);
  const References refs = read_references(folder());
  const std::vector<uint8_t> bytes = read_bytes(folder() + "/prompts.json");
  const Json json = *parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "prompts.json");
  for (const auto& item : json.items()) {
    std::vector<images::ImageShape> shapes;
    for (const Json& message : item.value["messages"]) {
      for (const Json& part : message["content"]) {
        if (part["type"] != "image") continue;
        const auto shape = images::shape_of(loaded->text.images->rules, picture(part["image"].text()).size);
        ASSERT_TRUE(shape) << shape.error().message();
        shapes.push_back(*shape);
      }
    }
    auto text = engine::apply_chat_template(loaded->text, item.value["messages"], true);
    ASSERT_TRUE(text) << text.error().message();
    if (item.value["rendered"].is_string()) {
      EXPECT_EQ(*text, item.value["rendered"].text()) << item.key;
    }
    text = engine::expand_images(*loaded->text.images, *text, shapes);
    ASSERT_TRUE(text) << text.error().message();
    const auto ids = loaded->text.tokenizer->encode(*text, {.add_special = false, .parse_special = true});
    ASSERT_TRUE(ids);
    EXPECT_EQ(*ids, refs.get<int32_t>(item.key + ".input_ids")) << item.key << "\n" << *text;
  }
}

TEST_P(VisionModel, TheTowerMakesTheReferencesRows) {
  const auto loaded = load(/*all_logits=*/true);
  ASSERT_TRUE(loaded && loaded->runner->images());
  model::ImageStore& store = *loaded->runner->images();
  const References refs = read_references(folder());
  const size_t stride = store.encoder().row_size(), hidden = loaded->runner->config().hidden_dim;
  double worst = 0;
  for (const Prompt& prompt : prompts(*loaded, refs)) {
    if (prompt.images.empty()) continue;
    std::vector<float> rows;
    for (const auto& image : prompt.images) {
      auto read = gpu::run_to_completion(device(), store.read(*image));
      ASSERT_TRUE(read) << read.error().message();
      rows.insert(rows.end(), read->begin(), read->end());
    }
    for (size_t i = 0; i < stride / hidden; ++i) {
      const std::string name = i == 0 ? ".image_embeds" : ".deepstack_" + std::to_string(i - 1);
      const double error =
          relative_l2(columns(rows, stride, i * hidden, hidden), refs.get<float>(prompt.name + name));
      EXPECT_LT(error, tolerance()) << prompt.name << name;
      worst = std::max(worst, error);
    }
  }
  if (!is_gguf()) record_shown(loaded->runner->config().family, {.feature = "images", .worst = worst});
}

TEST_P(VisionModel, LogitsAreTheReferences) {
  const References refs = read_references(folder());
  for (const uint32_t chunk : {128u, small_chunk()}) {
    const auto loaded = load(/*all_logits=*/true, chunk);
    ASSERT_TRUE(loaded && loaded->runner->images());
    model::DeviceModel& runner = *loaded->runner;
    for (const Prompt& prompt : prompts(*loaded, refs)) {
      std::vector<float> logits;
      const auto scored = gpu::run_to_completion(
          device(), engine::score_tokens(
                        runner, prompt.tokens, [&](uint32_t, uint32_t, const model::DeviceModel::Rows& rows) {
                          logits.insert(logits.end(), rows.logits.begin(), rows.logits.end());
                        }));
      ASSERT_TRUE(scored) << scored.error().message();
      EXPECT_LT(relative_l2(logits, refs.get<float>(prompt.name + ".logits")), tolerance())
          << prompt.name << " in pieces of " << chunk;
    }
  }
}

// Through the cache; a second question about the same picture encodes nothing, and another picture is never taken for
// it.
TEST_P(VisionModel, GreedyTokensAreTheReferences) {
  const auto loaded = load(/*all_logits=*/false);
  ASSERT_TRUE(loaded && loaded->runner->images());
  const References refs = read_references(folder());
  GenerateOptions options{.max_tokens = 12, .ignore_eos = true};
  options.sampling.temperature = 0;
  const formats::ModelConfig& config = loaded->runner->config();
  bool has_states = false;  // a text with states is evaluated again from its beginning, or from a checkpoint
  for (uint32_t i = 0; i < config.n_layers; ++i) has_states |= formats::is_recurrent_layer(config, i);
  std::vector<uint32_t> held;
  for (const Prompt& prompt : prompts(*loaded, refs)) {
    const auto wanted = refs.get<int32_t>(prompt.name + ".greedy_tokens");
    const auto ask = [&] {
      return one_answer(*loaded->runner, prompt.tokens, options, held, model::Drafting::kOff,
                        [&](engine::Request& request) { request.images = prompt.images; });
    };
    EXPECT_EQ(ask().tokens, wanted) << prompt.name;
    const uint64_t encoded = loaded->runner->images()->encoded_count();
    const Generation again = ask();
    EXPECT_EQ(again.tokens, wanted) << prompt.name << ", again";
    if (!has_states) {
      EXPECT_EQ(again.timings.evaluated_tokens, 1u) << prompt.name;
    }
    EXPECT_EQ(loaded->runner->images()->encoded_count(), encoded) << prompt.name;
  }
}

// Requests with pictures that ask for more: grammars, log-probabilities, penalties, samplers and drafts.
class VisionChoices : public VisionModel {};

TEST_P(VisionChoices, AreThoseOfTheLogits) {
  const References refs = read_references(folder());
  model::RunnerOptions options = exact();
  options.layer_table_on_host = GetParam() == "gemma4";
  const auto scoring = load(/*all_logits=*/true, 128, options), writing = load(false, 128, options);
  ASSERT_TRUE(scoring && writing);
  const auto with_picture = [&](engine::LoadedModel& loaded) {
    for (Prompt& prompt : prompts(loaded, refs))
      if (!prompt.images.empty()) return prompt;
    return Prompt{};
  };
  const Prompt scored = with_picture(*scoring), prompt = with_picture(*writing);
  ASSERT_FALSE(prompt.images.empty());
  std::vector<uint32_t> held;
  model::Drafting drafting = model::Drafting::kOff;
  const Chooser chooser{
      .vocab_size = writing->runner->config().vocab_size,
      .prompt = prompt.tokens,
      .answer =
          [&](GenerateOptions asked, const Adjust& adjust) {
            held.clear();
            return one_answer(*writing->runner, prompt.tokens, std::move(asked), held, drafting,
                              [&](engine::Request& request) {
                                request.images = prompt.images;
                                if (adjust) adjust(request);
                              });
          },
      .logits =
          [&](const Tokens& answer) {
            Tokens text = scored.tokens;
            text.insert(text.end(), answer.begin(), answer.end() - 1);
            std::vector<float> all;
            const auto done = gpu::run_to_completion(
                device(), engine::score_tokens(*scoring->runner, text,
                                               [&](uint32_t, uint32_t, const model::DeviceModel::Rows& rows) {
                                                 all.insert(all.end(), rows.logits.begin(),
                                                            rows.logits.end());
                                               }));
            EXPECT_TRUE(done) << done.error().message();
            const size_t count = answer.size() * writing->runner->config().vocab_size;
            EXPECT_GE(all.size(), count);
            return std::vector<float>(all.end() - static_cast<ptrdiff_t>(count), all.end());
          }};
  expect_grammar(chooser);
  expect_logprobs(chooser);
  expect_samplers(chooser);
  const bool has_states = GetParam() == "qwen3_5";
  const Generation wanted = chooser.answer(greedy_choice(), {});
  drafting = model::Drafting::kLookup;
  GenerateOptions asked = greedy_choice();
  asked.draft_rows = 4;
  const Generation got = chooser.answer(
      asked, [&](engine::Request& request) { request.settings.prediction = tokens_of(wanted); });
  EXPECT_EQ(got.tokens, wanted.tokens);
  EXPECT_EQ(got.timings.accepted_tokens > 4, !has_states);
}

// Windows, recurrent layers, a table on the host.
INSTANTIATE_TEST_SUITE_P(Models, VisionChoices, testing::Values("gemma3", "gemma4", "qwen3_5", "qwen3_vl"));

TEST(VisionRefused, LanePersistentAndEmbeddings) {
  const auto told = [](model::RunnerOptions options) {
    std::string lines;
    set_log_sink([&](LogLevel, std::string_view line) { lines += line; });
    options.images = true;
    options.ctx_len = 128;
    options.chunk = 128;
    const auto loaded = gpu::run_to_completion(
        device(), engine::load_model(device(), *formats::open_file_set(VISION_DIR "/qwen3_vl"),
                                     std::move(options), {}, {}));
    EXPECT_TRUE(loaded) << loaded.error().message();
    set_log_sink({});
    return lines;
  };
  EXPECT_NE(told({.policy = *kernels::make_policy("persistent")})
                .find("decode_layers.persistent is not used: the model reads pictures"),
            std::string::npos);
  model::RunnerOptions embeds{.policy = *kernels::make_policy("exact")};
  embeds.pooling = formats::Pooling::kMean;
  EXPECT_NE(told(std::move(embeds)).find("reads no pictures: it gives embeddings"), std::string::npos);
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(VISION_DIR)) {
    names.push_back(entry.path().filename().string());
    const std::string name = names.back();
    if (!fs::exists(entry.path() / "gguf") && name != "qwen3_5") continue;
    if (name != "qwen3_5") names.push_back(name + std::string(kGguf));
    names.push_back(name + std::string(kConverted));
  }
  names.emplace_back(kPanAndScan);
  names.push_back(std::string(kPanAndScan) + std::string(kConverted));
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Models, VisionModel, testing::ValuesIn(cases()), [](const auto& made) {
  std::string name = made.param;
  std::ranges::replace(name, '/', '_');
  return name;
});

}  // namespace
}  // namespace doppler
