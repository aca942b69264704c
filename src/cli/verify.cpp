// doppler verify: whether a model's bytes are those that were written (RDRR), whether it can be understood, and
// whether it gives the logits that it gave when it was converted. Repairs damaged files from another copy.

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "cli/self_test.h"
#include "cli/verbs.h"
#include "cli/verify_report.h"
#include "engine/rdrr_fields.h"
#include "formats/rdrr/folder_check_native.h"
#include "store/download.h"

namespace doppler::cli {
namespace {

using State = VerifyPart::State;

struct VerifyFlags {
  ModelFlags model;
  std::vector<std::string> words;
  std::string repair;
  uint32_t threads = 0;
  bool json = false, no_self_test = false, make_self_test = false;
};

class HashLine {
 public:
  ~HashLine() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  void show(uint64_t bytes) {
    if (!stderr_is_terminal() || bytes - last_ < kStep) return;
    last_ = bytes;
    shown_ = true;
    std::fprintf(stderr, "\r\033[Khashed %s", format_bytes(bytes).c_str());
  }

 private:
  static constexpr uint64_t kStep = 256 << 20;
  uint64_t last_ = 0;
  bool shown_ = false;
};

// The folder of an RDRR model: named itself or by its manifest. Empty: the path is something else.
std::string rdrr_folder(const std::string& path) {
  const std::string ending = std::string("/") + formats::kRdrrManifestName;
  if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  const std::string shard = path + "/" + formats::rdrr_shard_name(0);
  return is_there(path + ending) || is_there(shard) ? path : std::string();
}

Result<formats::RdrrFolderCheck> check_bytes(const std::string& folder, const VerifyFlags& flags,
                                             VerifyReport& report) {
  const auto start = std::chrono::steady_clock::now();
  HashLine line;
  DP_TRY(formats::RdrrFolderCheck check,
         formats::check_rdrr_folder(folder, flags.threads, [&](uint64_t bytes) { line.show(bytes); }));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.bytes = {
      .state = check.intact() ? State::kOk : State::kFailed, .summary = {}, .problems = {}, .files = {}};
  if (check.manifest) {
    report.bytes.summary =
        format_text("%s in %zu files hashed in %.2f s (%.2f GB/s)", format_bytes(check.bytes).c_str(),
                    check.manifest->shards.size() + check.manifest->assets.size(), seconds,
                    static_cast<double>(check.bytes) / 1e9 / seconds);
  }
  for (const formats::RdrrFault& fault : check.faults) {
    report.bytes.problems.push_back(fault.problem);
    report.bytes.files.push_back(fault.file);
  }
  report.notes.clear();
  for (const std::string& member : check.unknown) {
    report.notes.push_back("The manifest has the member " + member + ", which this build does not know.");
  }
  for (const std::string& name : check.others) {
    report.notes.push_back("File \"" + printable(name) + "\" is no part of the model.");
  }
  return check;
}

// Another copy of the model: a folder, a name in the store, or an address whose files are fetched as `doppler pull`
// does.
Result<formats::FetchFile> fetch_from(const std::string& source) {
  if (!source.starts_with("http://") && !source.starts_with("https://")) {
    DP_TRY(const std::string path, named_model_path(source));
    const std::string folder = rdrr_folder(path);
    return formats::fetch_from_folder(folder.empty() ? path : folder);
  }
  const auto web = std::make_shared<store::Web>(store::WebOptions{});
  return formats::FetchFile([web, source](const std::string& file, const std::string& to) -> Result<> {
    const std::string slash = source.ends_with('/') ? "" : "/";
    store::DownloadJob job;
    job.url = source + slash + file;
    job.path = to;
    DP_TRY([[maybe_unused]] const store::Downloaded done, store::download(*web, job, {}));
    const bool renamed = rename_path(to + ".part", to);
    remove_file(to + ".journal");
    if (renamed) return {};
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", to.c_str(), std::strerror(errno));
  });
}

// Checks, repairs, checks again. It checks twice because a damaged manifest hides other damage.
Result<void> check_and_repair(const std::string& folder, const VerifyFlags& flags, VerifyReport& report) {
  DP_TRY(formats::RdrrFolderCheck check, check_bytes(folder, flags, report));
  if (flags.repair.empty()) return {};
  DP_TRY(const formats::FetchFile fetch, fetch_from(flags.repair));
  for (int round = 0; round < 2 && !check.intact(); ++round) {
    DP_TRY(const formats::RdrrRepair repair, formats::repair_rdrr_folder(folder, check, fetch));
    report.repaired.insert(report.repaired.end(), repair.replaced.begin(), repair.replaced.end());
    if (repair.replaced.empty()) {
      for (const formats::RdrrFault& left : repair.left) {
        report.bytes.problems.push_back("Not repaired: " + left.problem);
      }
      return {};
    }
    DP_TRY(check, check_bytes(folder, flags, report));
  }
  return {};
}

std::string format_name(const formats::Checkpoint& checkpoint) {
  if (const formats::RdrrManifest* m = checkpoint.rdrr()) {
    return format_text("RDRR %u.%u, %s, tensors: %zu, shards: %zu", m->major, m->minor,
                       printable(m->id).c_str(), m->tensors.size(), m->shards.size());
  }
  const char* kind = checkpoint.gguf() ? "GGUF" : "Hugging Face folder";
  return format_text("%s, tensors: %zu", kind, checkpoint.tensors().size());
}

// Tables, architecture numbers, tokenizer and template, all without weights.
void check_structure(const VerifyFlags& flags, VerifyReport& report) {
  VerifyPart& part = report.structure;
  part.state = State::kFailed;
  // The bytes were looked at already; what is wrong with the structure shall be seen all the same.
  auto files = named_files(flags.model.model, flags.model.synthetic);
  if (!files) return part.problems.push_back(files.error().sentence());
  const LogLevel level = log_level();
  set_log_level(LogLevel::kError);
  auto opened = run_now(formats::open_checkpoint(std::move(*files), {.verify = false}));
  set_log_level(level);
  if (!opened) return part.problems.push_back(opened.error().sentence());
  const formats::Checkpoint& checkpoint = **opened;
  report.format = format_name(checkpoint);
  auto config = formats::read_config(checkpoint);
  if (!config) {
    part.problems.push_back(config.error().sentence());
  } else if (const formats::RdrrManifest* manifest = checkpoint.rdrr()) {
    if (auto same = engine::check_rdrr_architecture(manifest->architecture, *config); !same) {
      part.problems.push_back(same.error().sentence());
    }
  }
  auto text = run_now(engine::load_text_model(checkpoint, ""));
  if (!text) {
    part.problems.push_back(text.error().sentence());
  } else {
    if (!text->tokenizer) report.notes.push_back("No tokenizer: " + text->tokenizer_problem);
    if (!text->templates.chat.problem.empty())
      report.notes.push_back("No chat template: " + text->templates.chat.problem);
  }
  if (!part.problems.empty()) return;
  part.state = State::kOk;
  part.summary = format_text("%s, %u layers, vocabulary of %u", config->family.c_str(), config->n_layers,
                             config->vocab_size);
}

void check_self_test(const VerifyFlags& flags, const formats::RdrrManifest& manifest, VerifyReport& report) {
  VerifyPart& part = report.self_test;
  part.state = State::kNone;
  part.summary = "none was stored";
  if (!manifest.self_test) return;
  part.state = State::kFailed;
  part.summary.clear();
  auto model = load_for_self_test(flags.model);
  if (!model) return part.problems.push_back(model.error().sentence());
  model::DeviceModel& runner = *Model::Impl::of(*model).loaded->runner;
  const auto result =
      gpu::run_to_completion(runner.device(), engine::run_self_test(runner, *manifest.self_test));
  if (!result) return part.problems.push_back(result.error().sentence());
  part.summary = format_text("%u logits, largest difference %.2g (%.2g allowed), on %s", result->compared,
                             static_cast<double>(result->worst), static_cast<double>(result->allowed),
                             model->info().adapter.c_str());
  if (result->passed()) {
    part.state = State::kOk;
  } else {
    part.problems.push_back(
        format_text("The logit of token %u at position %u is another than when the model was "
                    "converted.",
                    result->id, result->position));
  }
}

Result<VerifyReport> verify(VerifyFlags& flags) {
  VerifyReport report;
  DP_TRY(flags.model.model, named_model_path(flags.model.model));
  if (!is_there(flags.model.model)) return forward(named_files(flags.model.model, "").error());
  report.model = flags.model.model;
  const std::string folder = rdrr_folder(flags.model.model);
  if (folder.empty()) {
    if (!flags.repair.empty()) {
      return fail(ErrorKind::kInvalidInput, "%s is no RDRR folder; only those have hashes to repair by.",
                  flags.model.model.c_str());
    }
    report.bytes = {
        .state = State::kNone, .summary = "only RDRR models have hashes", .problems = {}, .files = {}};
    report.self_test = {
        .state = State::kNone, .summary = "only RDRR models have one", .problems = {}, .files = {}};
  } else {
    report.format = "RDRR";
    DP_CHECK(check_and_repair(folder, flags, report));
  }
  check_structure(flags, report);
  if (folder.empty() || !report.ok()) return report;
  if (flags.no_self_test) return report;
  if (flags.make_self_test) DP_CHECK(add_self_test(folder, flags.model));
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint, open_named_checkpoint(flags.model.model, ""));
  check_self_test(flags, *checkpoint->rdrr(), report);
  return report;
}

}  // namespace

int verify_verb(std::span<const std::string> arguments) {
  VerifyFlags flags;
  Args args(
      "doppler verify [flags] [MODEL]",
      "Checks a model: every byte against its hash (RDRR), structure, and stored logits. Exit code 1 if "
      "anything is wrong.");
  args.words("MODEL", &flags.words);
  args.text("repair", 0, "SOURCE",
            "replace damaged files by those of this copy: a folder, a stored model's name or an address",
            &flags.repair);
  args.count("threads", 'j', "COUNT", "hashing threads (default: one a core)", &flags.threads);
  args.flag("no-self-test", 0, "do not load the model to compare its logits", &flags.no_self_test);
  args.flag("make-self-test", 0, "first store the logits that the model gives now", &flags.make_self_test);
  args.flag("json", 0, "print one JSON object", &flags.json);
  args.text("webgpu", 0, "NAME", "WebGPU library: dawn, wgpu or a path", &flags.model.load.webgpu);
  args.text("device", 0, "DEVICE", "number or part of the name from doppler devices",
            &flags.model.load.device);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.make_self_test && flags.no_self_test) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "Both --make-self-test and --no-self-test were given; one of them is needed."));
  }
  if (flags.words.size() > 1) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Several models were given; one is verified at a time."));
  }
  if (!flags.words.empty()) flags.model.model = flags.words[0];
  const auto report = verify(flags);
  if (!report) return exit_failed(report.error());
  if (flags.json) {
    std::printf("%s\n", to_text(verify_report_json(*report), 2).c_str());
  } else {
    print_verify_report(*report);
  }
  return report->ok() ? 0 : 1;
}

}  // namespace doppler::cli
