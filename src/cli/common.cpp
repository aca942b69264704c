#include "cli/common.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "base/own_folders_native.h"
#include "base/process.h"
#include "base/trace.h"
#include "cli/adapter_flags.h"
#include "cli/beside_program.h"
#include "cli/link.h"
#include "engine/device_plan_native.h"
#include "engine/model_options.h"
#include "formats/file_set_native.h"
#include "formats/projector/projector.h"
#include "formats/synth/synthetic_model.h"
#include "gpu/device_list.h"
#include "kernels/catalogue.h"
#include "kernels/rope/rope.h"
#include "lowering/rule.h"
#include "store/model_store.h"

namespace doppler::cli {
namespace {

Result<void> set_level(std::string_view name) {
  static constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) {
      set_log_level(static_cast<LogLevel>(i));
      return {};
    }
  }
  return fail(ErrorKind::kInvalidInput,
              "Flag --log-level was given \"%s\"; allowed are error, warning, info, debug.",
              printable(name).c_str());
}

Result<void> force_kernel(std::string_view text, std::map<std::string, std::string>* forced) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --kernel was given \"%s\"; it takes OPERATION=VARIANT (see doppler kernels).",
                printable(text).c_str());
  }
  (*forced)[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  kernels::Policy policy;
  policy.forced = *forced;
  return kernels::check_forced_names(gpu::Caps{}, policy);  // the names are the same on all devices
}

std::string g_trace_file;  // of --trace; empty: none

// One line on a terminal, rewritten; nothing elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(std::string_view stage, uint64_t done, uint64_t total) {
    if (!enabled_ || total == 0) return;
    const auto percent =
        static_cast<unsigned>(100.0 * static_cast<double>(done) / static_cast<double>(total));
    if (percent == shown_ && stage == stage_) return;
    shown_ = percent;
    stage_ = stage;
    std::fprintf(stderr, "\r\033[Kloading %s %u%%", stage_.c_str(), percent);
    written_ = true;
  }

 private:
  void clear() {
    if (written_) std::fprintf(stderr, "\r\033[K");
  }
  bool enabled_ = stderr_is_terminal();
  bool written_ = false;
  unsigned shown_ = 101;
  std::string stage_;
};

}  // namespace

std::string user_cache_dir() { return user_folder(UserFolder::kCache); }

bool stderr_is_terminal() { return is_terminal(StandardStream::kError); }

void add_log_flag(Args& args) {
  args.custom("log-level", 0, "LEVEL", "error, warning (default), info or debug", set_level);
}

void add_kv_flag(Args& args, std::string_view help, std::string* kv) {
  args.custom("kv", 0, "FORMAT", help, [kv](std::string_view value) -> Result<void> {
    if (!kernels::cache_format_of(value)) {
      return fail(ErrorKind::kInvalidInput, "Flag --kv was given \"%s\"; allowed are f16, f32 and q8_0.",
                  printable(value).c_str());
    }
    *kv = std::string(value);
    return {};
  });
}

void add_model_flags(Args& args, ModelFlags& flags, bool allow_synthetic) {
  args.group("Model and device");
  args.name("model", 'm', "MODEL",
            "GGUF file, model folder or name in the store (default: the shipped model)", &flags.model);
  if (allow_synthetic) {
    args.text("synthetic", 0, "SHAPE:QUANT",
              "random weights of a real shape (doppler synth --list) or of a config.json, instead of a file",
              &flags.synthetic);
  }
  add_load_flags(args, flags);
}

namespace {

void add_devices_flag(Args& args, LoadOptions& load) {
  args.custom("devices", 0, "all|N,N", "several devices (see --split-mode): all, or numbers such as 0,1",
              [&load](std::string_view value) -> Result<void> {
                if (!gpu::names_several(std::string(value)) && !parse_int(value)) {
                  return fail(
                      ErrorKind::kInvalidInput,
                      "Flag --devices was given \"%s\"; allowed are all, and numbers from doppler devices "
                      "with commas between them, such as 0,1.",
                      printable(value).c_str());
                }
                load.device = std::string(value);
                return {};
              });
  args.custom("split-mode", 0, "MODE",
              "how several devices share the model: none (each has all of it), layer (each has some of its "
              "layers), auto (default: none if each has room for the model, or else layer)",
              [&load](std::string_view value) -> Result<void> {
                DP_CHECK(engine::check_split_mode(value, /*devices=*/2));  // --devices may follow
                load.split_mode = std::string(value);
                return {};
              });
}

}  // namespace

void add_load_flags(Args& args, ModelFlags& flags) {
  args.text("webgpu", 0, "NAME", "WebGPU library: dawn, wgpu or a path", &flags.load.webgpu);
  args.text("device", 0, "DEVICE", "number or part of the name from doppler devices", &flags.load.device);
  if (flags.takes_devices) add_devices_flag(args, flags.load);
  args.custom("lane", 0, "LANE", "fast (default), exact, persistent, or portable, subgroups, dp4a, matrix",
              [&flags](std::string_view value) -> Result<void> {
                DP_CHECK(kernels::make_policy(value));
                flags.load.lane = std::string(value);
                return {};
              });
  args.custom("kernel", 0, "OP=VARIANT", "force a variant of an operation (doppler kernels); may be repeated",
              [&flags](std::string_view value) { return force_kernel(value, &flags.load.kernels); });
  args.custom("rule", 0, "NAME=off", "lower the model without a rule (doppler graph); may be repeated",
              [&flags](std::string_view value) -> Result<void> {
                lowering::RuleSet rules;
                DP_CHECK(rules.set(value));
                flags.load.rules.emplace_back(value);
                return {};
              });
  add_kv_flag(args, "cache in f16 (default), f32 or q8_0; the exact lane has f32 for f16", &flags.load.kv);
  args.count("ctx", 'c', "TOKENS", "context length (default: the model's, at most 4096)",
             &flags.load.ctx_len);
  args.custom("draft", 0, "NAME",
              "who guesses tokens, where that is faster: auto (default; model or next if it is there, or "
              "else lookup), off, lookup (the text "
              "itself), next (the model's next-token layer), model (--draft-model)",
              [&flags](std::string_view value) -> Result<void> {
                DP_CHECK(engine::drafting_of(value));
                flags.load.draft = std::string(value);
                return {};
              });
  args.text("draft-model", 0, "FILE", "a small model of the same vocabulary that guesses: --draft model",
            &flags.load.draft_model);
  args.text("mmproj", 0, "FILE",
            "of a GGUF model: its vision tower's file (default: the one beside the model)",
            &flags.load.mmproj);
  args.flag("no-verify", 0, "load an RDRR model without comparing it with its hashes", &flags.no_verify);
  args.count("chunk", 0, "TOKENS", "tokens of a prefill chunk (default 512)", &flags.load.chunk);
  args.custom("expert-memory", 0, "GB",
              "GPU memory for a mixture's experts; the others are read from the file when they are chosen",
              [&flags](std::string_view value) -> Result<void> {
                const auto given = parse_double(value);
                if (!given || !(*given > 0) || *given > 1e6) {
                  return fail(
                      ErrorKind::kInvalidInput,
                      "Flag --expert-memory was given \"%s\"; allowed are gigabytes above 0 and up to "
                      "1000000, such as 8 or 0.5.",
                      printable(value).c_str());
                }
                flags.load.expert_bytes = static_cast<uint64_t>(std::ceil(*given * 1e9));
                return {};
              });
  args.flag("layer-table-on-host", 0,
            "embeddings of each layer (Gemma 3n, Gemma 4) stay in the file; the rows of a step's tokens come "
            "with it",
            &flags.load.layer_table_on_host);
  args.count("ring", 0, "N", "answers of the device that may be outstanding, 2 to 64 (default 4)",
             &flags.load.ring, {.least = 2, .most = model::kMaxTickets});
  args.flag("no-tuning", 0, "the tables' choices, not those that doppler tune stored", &flags.no_tuning);
  args.custom("trace", 0, "FILE", "write a Chrome trace of the run (open it in Perfetto)",
              [](std::string_view file) -> Result<void> {
                g_trace_file = std::string(file);
                start_tracing();
                return {};
              });
  add_adapter_flags(args, flags.load);
  add_preset_flag(args, flags.preset);
  add_log_flag(args);
}

void add_pan_and_scan_flag(Args& args, LoadOptions& load) {
  args.flag("pan-and-scan", 0,
            "read long pictures as a whole and in crops (Gemma 3): more tokens, more detail",
            &load.pan_and_scan);
}

int finish_trace(int code) {
  if (g_trace_file.empty()) return code;
  const std::string text = trace_json();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const auto written = write_file_atomically(g_trace_file, bytes);
  return written ? code : exit_failed(written.error());
}

Result<std::string> default_model_path() {
  if (std::string path = environment_variable("DOPPLER_MODEL"); !path.empty()) return path;
  if (auto path = beside_program({"models/storyteller.gguf", "share/doppler/models/storyteller.gguf"}))
    return std::move(*path);
  return fail(ErrorKind::kIo,
              "The default model (models/storyteller.gguf) was not found; name one with --model.");
}

Result<std::string> named_model_path(const std::string& model) {
  std::string named = model;
  if (named.empty()) {
    DP_TRY(named, default_model_path());
  }
  if (is_link(named)) {
    DP_TRY(const std::string path, path_of_link(named));
    if (!path.empty()) return path;
    return fail(ErrorKind::kInvalidInput, "The model of %s is not in the store; doppler pull fetches it.",
                named.c_str());
  }
  if (!store::is_store_name(named) || is_there(named)) return named;
  const auto models = store::ModelStore::open();
  if (!models || !(models->has(named) || models->has_unfinished(named))) return named;
  DP_TRY(const store::StoredModel stored, models->find(named));
  return stored.load_path();
}

Result<std::unique_ptr<formats::FileSet>> named_files(const std::string& model,
                                                      const std::string& synthetic) {
  if (!synthetic.empty()) {
    if (!model.empty()) {
      return fail(ErrorKind::kInvalidInput, "Both --model and --synthetic were given; one is needed.");
    }
    DP_TRY(std::unique_ptr<formats::SyntheticModel> made, formats::SyntheticModel::make(synthetic));
    return formats::synthetic_file_set(std::move(made));
  }
  DP_TRY(const std::string path, named_model_path(model));
  return formats::open_file_set(path);
}

Result<std::unique_ptr<formats::Checkpoint>> open_named_checkpoint(const std::string& model,
                                                                   const std::string& synthetic) {
  DP_TRY(std::unique_ptr<formats::FileSet> files, named_files(model, synthetic));
  return run_now(formats::open_checkpoint(std::move(files)));
}

Result<std::unique_ptr<formats::Checkpoint>> open_named_projector(formats::Checkpoint& model,
                                                                  const std::string& mmproj) {
  std::unique_ptr<formats::FileSet> given;
  if (!mmproj.empty()) {
    DP_TRY(given, formats::open_file_set(mmproj));
  }
  return run_now(formats::open_projector(model, std::move(given)));
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_named_tokenizer(const std::string& model) {
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint, open_named_checkpoint(model, ""));
  DP_TRY(engine::TextModel text, run_now(engine::load_text_model(*checkpoint, "")));
  if (text.tokenizer) return std::move(text.tokenizer);
  return fail(ErrorKind::kUnsupported, "%s has no tokenizer that can be used: %s", checkpoint->name().c_str(),
              text.tokenizer_problem.c_str());
}

Result<Model> load_named_model(const ModelFlags& flags, LoadExtras extras) {
  for (const AdapterFile& adapter : flags.load.adapters) {
    if (adapter.name.empty() || flags.takes_names) continue;
    return fail(ErrorKind::kInvalidInput,
                "Flag --lora was given the name \"%s\"; only doppler serve and bench --streams have "
                "requests that ask for adapters by name.",
                printable(adapter.name).c_str());
  }
  ProgressLine line;
  const auto progress = [&](std::string_view stage, uint64_t done, uint64_t total) {
    line.show(stage, done, total);
    return true;
  };
  return load_quietly(flags, progress, extras);
}

Result<Model> load_quietly(const ModelFlags& flags, const ProgressCallback& progress, LoadExtras extras) {
  LoadOptions options = flags.load;
  if (gpu::names_several(options.device) && !flags.takes_devices) {
    return fail(
        ErrorKind::kInvalidInput,
        "Flag --device was given \"%s\"; only doppler run, serve, batch and bench --streams use several "
        "devices.",
        printable(options.device).c_str());
  }
  options.verify = !flags.no_verify;
  if (options.cache_dir.empty()) options.cache_dir = user_cache_dir();
  if (flags.no_tuning) options.tuned = false;
  options.progress = progress;
  if (!flags.template_file.empty()) {
    DP_TRY(options.chat_template, read_text_file(flags.template_file));
  }
  DP_TRY(std::unique_ptr<formats::FileSet> files, named_files(flags.model, flags.synthetic));
  return load_files(std::move(files), options, extras);
}

int exit_usage(const Error& error) {
  std::fprintf(stderr, "doppler: %s\n", error.message().c_str());
  return error.kind() == ErrorKind::kIo ? 1 : 2;
}

int exit_failed(const Error& error) {
  std::fprintf(stderr, "doppler: %s\n", error.message().c_str());
  return 1;
}

std::optional<int> parse_or_exit(Args& args, std::span<const std::string> arguments) {
  if (auto parsed = args.parse(arguments); !parsed) return exit_usage(parsed.error());
  if (!args.wants_help()) return std::nullopt;
  std::fputs(args.help().c_str(), stdout);
  return 0;
}

Result<std::vector<int32_t>> parse_tokens(std::string_view text) {
  std::vector<int32_t> ids;
  for (const std::string& part : split(text, ',')) {
    const auto id = parse_int(trim(part));
    if (!id || *id < 0 || *id > INT32_MAX) {
      return fail(ErrorKind::kInvalidInput, "\"%s\" is no token id; expected are numbers such as 1,2,3.",
                  printable(part).c_str());
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

Result<std::string> read_text_file(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : open_stdio(path, "rb");
  if (!file) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  std::string text;
  char buffer[65536];
  for (size_t count; (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, count);
  const bool failed = std::ferror(file) != 0;
  if (file != stdin) std::fclose(file);
  if (failed) return fail(ErrorKind::kIo, "Cannot read %s.", path.c_str());
  return text;
}

}  // namespace doppler::cli
