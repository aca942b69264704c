// doppler synth: a GGUF file with the shape of a published model and random weights, for measuring speed.
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "cli/common.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "formats/adapters/write_adapter.h"
#include "formats/file_sink_native.h"
#include "formats/quant/mix.h"
#include "formats/synth/shapes.h"
#include "formats/synth/synth_native.h"
#include "formats/synth/synthetic_adapter.h"

namespace doppler::cli {
namespace {

int list_shapes(bool json) {
  Json list = Json::array();
  Table table(
      {"shape", ">layers", ">hidden", ">heads", ">kv heads", ">head dim", ">feed-forward", ">vocabulary"});
  for (const std::string& name : formats::shape_name_list()) {
    const auto shape = formats::shape_of(name);
    if (!shape) return exit_failed(shape.error());
    const formats::ModelConfig& s = shape->config;
    list.push_back({{"shape", name},
                    {"layers", s.n_layers},
                    {"hidden_dim", s.hidden_dim},
                    {"heads", s.n_heads},
                    {"kv_heads", s.n_kv_heads},
                    {"head_dim", s.head_dim},
                    {"ffn_dim", s.ffn_dim},
                    {"vocab_size", s.vocab_size}});
    table.add({name, std::to_string(s.n_layers), std::to_string(s.hidden_dim), std::to_string(s.n_heads),
               std::to_string(s.n_kv_heads), std::to_string(s.head_dim), std::to_string(s.ffn_dim),
               std::to_string(s.vocab_size)});
  }
  if (json) {
    Json quants = Json::array();
    for (const std::string& name : split(formats::quant_mix_names(), ','))
      quants.push_back(std::string(trim(name)));
    const Json out = {{"shapes", std::move(list)}, {"quants", std::move(quants)}};
    std::printf("%s\n", to_text(out, 2).c_str());
  } else {
    std::printf("%s\nQUANT is one of %s (default: q4_k_m).\n", table.text().c_str(),
                formats::quant_mix_names().c_str());
  }
  return 0;
}

Result<double> write_timed(const formats::SyntheticModel& model, const std::string& path) {
  unsigned shown = 101;
  const bool show = stderr_is_terminal();
  const auto start = std::chrono::steady_clock::now();
  const auto written = formats::write_synthetic(model, path, [&](uint64_t done, uint64_t total) {
    const auto percent =
        static_cast<unsigned>(100.0 * static_cast<double>(done) / static_cast<double>(total));
    if (!show || percent == shown) return;
    shown = percent;
    std::fprintf(stderr, "\r\033[Kwriting %s %u%%", model.name().c_str(), percent);
  });
  if (show) std::fprintf(stderr, "\r\033[K");
  DP_CHECK(written);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<void> write_adapter(std::unique_ptr<formats::SyntheticModel> model, uint32_t rank,
                           const std::string& path) {
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint,
         run_now(formats::open_checkpoint(formats::synthetic_file_set(std::move(model)))));
  DP_TRY(const formats::ModelConfig config, formats::read_config(*checkpoint));
  const formats::Adapter adapter = formats::synthetic_adapter(config, rank);
  DP_TRY(const std::unique_ptr<formats::FileSink> sink, formats::FileSink::create(path));
  DP_CHECK(formats::write_gguf_adapter(adapter, config, *sink));
  DP_CHECK(sink->commit());
  std::printf("%s: synthetic adapter of rank %u for %s, %zu matrices, %llu numbers\n", path.c_str(), rank,
              config.name.c_str(), adapter.tensors.size(),
              static_cast<unsigned long long>(adapter.numbers()));
  return {};
}

}  // namespace

int synth_verb(std::span<const std::string> arguments) {
  std::vector<std::string> words;
  std::string out;
  uint32_t adapter_rank = 0;
  std::optional<double> agree;
  bool list = false, json = false, replace = false;
  Args args("doppler synth SHAPE[:QUANT] -o FILE.gguf",
            "Writes a synthetic model: the shape of a published one, or of any config.json, with random "
            "weights. For measuring "
            "speed only.");
  args.words("SHAPE[:QUANT]", &words);
  args.text("out", 'o', "FILE", "the GGUF file to write", &out);
  args.count("adapter", 0, "RANK",
             "an adapter (LoRA) of that rank for the model, of all matrices in its layers, instead of it",
             &adapter_rank, {.least = 1, .most = formats::kMostAdapterRank});
  args.custom("agree", 0, "P",
              "a model whose text is known, to measure drafts: in this share of tokens, 0 to 1, a draft "
              "model agrees with "
              "a target of 1",
              [&agree](std::string_view value) -> Result<void> {
                agree = parse_double(value);
                if (agree && *agree >= 0 && *agree <= 1) return {};
                return fail(ErrorKind::kInvalidInput, "Flag --agree was given \"%s\"; allowed is 0 to 1.",
                            printable(value).c_str());
              });
  args.flag("replace", 0, "put the result in the place of a FILE that exists", &replace);
  args.flag("list", 'l', "list the shapes and quantisations", &list);
  args.flag("json", 0, "print one JSON object", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (list) return list_shapes(json);
  if (words.size() != 1 || out.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "One SHAPE[:QUANT] and -o FILE are needed; --list shows the shapes."));
  }

  if (agree && adapter_rank != 0) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput,
              "Flag --agree is for a model; --adapter writes an adapter, whose text is not known."));
  }
  if (!replace && is_there(out)) {
    return exit_failed(
        Error(ErrorKind::kInvalidInput, out + " exists already; --replace puts the result in its place."));
  }
  auto model = formats::SyntheticModel::make(words[0], agree);
  if (!model) return exit_usage(model.error());
  if (adapter_rank != 0) {
    const auto written = write_adapter(std::move(*model), adapter_rank, out);
    return written ? 0 : exit_failed(written.error());
  }
  auto seconds = write_timed(**model, out);
  if (!seconds) return exit_failed(seconds.error());
  const double gigabytes = static_cast<double>((*model)->size()) / 1e9;
  if (json) {
    const Json report = {{"file", out},
                         {"name", (*model)->name()},
                         {"synthetic", true},
                         {"bytes", (*model)->size()},
                         {"seconds", *seconds}};
    std::printf("%s\n", to_text(report, 2).c_str());
  } else {
    std::printf("%s: %s, synthetic (random weights), %s in %.2f s (%.2f GB/s)\n", out.c_str(),
                (*model)->name().c_str(), format_bytes((*model)->size()).c_str(), *seconds,
                *seconds > 0 ? gigabytes / *seconds : 0);
  }
  return 0;
}

}  // namespace doppler::cli
