// doppler logits: the model's raw output for given tokens, for comparison with other engines.
#include <cstdio>
#include <cstring>

#include "cli/common.h"
#include "cli/verbs.h"
#include "engine/score.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/sink.h"
#include "images/prepared_image.h"

namespace doppler::cli {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::string tokens, out;
  std::vector<std::string> images;
  bool hidden = false;
};

struct LogitsScored {
  std::vector<float> logits;  // [T, V]
  std::vector<float> hidden;  // [L + 1, T, H]
  // The pixels of the pictures' tiles, one after another. A row for each token of a picture: the values that replace
  // its embedding, then those that are added after the first layers.
  std::vector<float> pixels, image_rows;
  uint64_t image_row_size = 0;
};

// The numbers of the pictures' tokens in the place of expanded ones, and what the tower makes of the pictures.
Result<Model::Impl::Prompt> read_images(Model& model, std::span<const uint32_t> tokens,
                                        std::span<const std::string> files, LogitsScored& out) {
  std::vector<std::shared_ptr<const Image>> pictures;
  for (const std::string& file : files) {
    DP_TRY(auto image, Image::load(file));
    pictures.push_back(std::move(image));
  }
  DP_TRY(Model::Impl::Prompt prompt,
         Model::Impl::of(model).image_prompt({tokens.begin(), tokens.end()}, pictures));
  model::DeviceModel& runner = *Model::Impl::of(model).loaded->runner;
  for (const auto& image : prompt.images) {
    for (const images::Picture& tile : image->prepared.tiles) {
      const std::vector<float> values = images::processor_values(runner.images()->encoder().rules(), tile);
      out.pixels.insert(out.pixels.end(), values.begin(), values.end());
    }
    runner.images()->take(image);
    DP_TRY(const std::vector<float> rows,
           gpu::run_to_completion(runner.device(), runner.images()->read(*image)));
    out.image_rows.insert(out.image_rows.end(), rows.begin(), rows.end());
    out.image_row_size = runner.images()->encoder().row_size();
  }
  return prompt;
}

Result<LogitsScored> score(Model& model, std::span<const uint32_t> given, const LogitsFlags& flags) {
  const bool hidden = flags.hidden;
  LogitsScored out;
  DP_TRY(const Model::Impl::Prompt prompt, read_images(model, given, flags.images, out));
  const std::span<const uint32_t> tokens = prompt.tokens;
  model::DeviceModel& runner = *Model::Impl::of(model).loaded->runner;
  const formats::ModelConfig& config = runner.config();
  const size_t length = tokens.size();
  const size_t width = config.hidden_dim;
  if (hidden) out.hidden.resize((config.n_layers + 1) * length * width);
  const auto on_rows = [&](uint32_t pos, uint32_t count, const model::DeviceModel::Rows& rows) {
    out.logits.insert(out.logits.end(), rows.logits.begin(), rows.logits.end());
    for (size_t layer = 0; hidden && layer <= config.n_layers; ++layer) {
      std::memcpy(out.hidden.data() + (layer * length + pos) * width,
                  rows.hidden.data() + layer * count * width, count * width * sizeof(float));
    }
  };
  DP_CHECK(gpu::run_to_completion(runner.device(), engine::score_tokens(runner, tokens, on_rows)));
  return out;
}

std::span<const uint8_t> bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

Result<void> write(const Model& model, const LogitsScored& scored, const LogitsFlags& flags, uint64_t length,
                   uint64_t width) {
  std::vector<formats::SafetensorsItem> items = {
      {"logits", DType::kF32, {length, model.info().vocab_size}, bytes_of(scored.logits)}};
  if (flags.hidden)
    items.push_back(
        {"hidden", DType::kF32, {model.info().n_layers + 1, length, width}, bytes_of(scored.hidden)});
  if (!flags.images.empty()) {
    items.push_back({"pixel_values", DType::kF32, {scored.pixels.size()}, bytes_of(scored.pixels)});
    items.push_back({"image_embeddings",
                     DType::kF32,
                     {scored.image_rows.size() / scored.image_row_size, scored.image_row_size},
                     bytes_of(scored.image_rows)});
  }
  const std::pair<std::string, std::string> metadata[] = {{"model", model.info().name},
                                                          {"lane", flags.model.load.lane},
                                                          {"preset", flags.model.preset.used.name}};
  formats::MemorySink sink;
  DP_CHECK(formats::write_safetensors(items, metadata, sink));
  return write_file_atomically(flags.out, sink.bytes());
}

}  // namespace

int logits_verb(std::span<const std::string> arguments) {
  LogitsFlags flags;
  Args args("doppler logits --model PATH --tokens 1,2,3 --out FILE.safetensors",
            "Writes the logits of every position: tensor `logits` F32 [T, V]. Needs no tokenizer.");
  args.text("tokens", 0, "IDS", "token ids: 1,2,3", &flags.tokens);
  args.texts("image", 0, "FILE",
             "a picture whose tokens the ids have in full, in order; also `pixel_values` F32, as the model's "
             "processor makes them, and `image_embeddings` F32 [N, H]; may be repeated",
             &flags.images);
  add_pan_and_scan_flag(args, flags.model.load);
  args.text("out", 'o', "FILE", "safetensors file to write", &flags.out);
  args.flag("hidden", 0, "also `hidden` F32 [L+1, T, H]: input of layer 0, then output of each layer",
            &flags.hidden);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.tokens.empty() || flags.out.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Both --tokens and --out are needed."));
  }
  if (flags.model.load.pan_and_scan && flags.images.empty()) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Flag --pan-and-scan is about pictures: it goes with --image."));
  }
  auto ids = parse_tokens(flags.tokens);
  if (!ids) return exit_usage(ids.error());
  const std::vector<uint32_t> tokens(ids->begin(), ids->end());
  flags.model.load.images = !flags.images.empty();
  auto model = load_named_model(flags.model, {.all_logits = true, .hidden = flags.hidden});
  if (!model) return exit_failed(model.error());
  auto scored = score(*model, tokens, flags);
  if (!scored) return exit_failed(scored.error());
  const uint64_t width = Model::Impl::of(*model).loaded->runner->config().hidden_dim;
  if (auto written = write(*model, *scored, flags, tokens.size(), width); !written)
    return exit_failed(written.error());
  return 0;
}

}  // namespace doppler::cli
