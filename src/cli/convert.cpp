// doppler convert: a model to another format or other number types. The work is in formats/convert/; here are flags,
// the progress line and the report.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/folders.h"
#include "base/json.h"
#include "cli/adapter_flags.h"
#include "cli/common.h"
#include "cli/convert_adapter.h"
#include "cli/self_test.h"
#include "cli/transfer_line.h"
#include "cli/verbs.h"
#include "engine/hints_of_tuning_native.h"
#include "engine/rdrr_fields.h"
#include "formats/adapters/merge.h"
#include "formats/adapters/whole_tensors.h"
#include "formats/checkpoint_changes.h"
#include "formats/convert/convert_native.h"
#include "formats/convert/hf_to_projector.h"
#include "formats/file_set_native.h"
#include "formats/projector/projector.h"
#include "formats/quant/mix.h"
#include "formats/rdrr/rdrr_writer.h"

namespace doppler::cli {
namespace {

using formats::ConvertOptions;
using formats::OutputKind;

std::atomic<bool> g_stop = false;

// The first signal ends the conversion in order, the next one the program.
void on_signal(int number) {
  g_stop = true;
  std::signal(number, SIG_DFL);
}

struct ConvertFlags {
  std::vector<std::string> words, tensors, metadata;
  ConvertOptions options;
  ModelFlags device;  // for the self test
  std::string to, layout, shard_size, hints_file, base, mmproj;
  std::vector<AdapterFile> adapters;                          // merged
  std::optional<std::vector<formats::RdrrKernelHint>> hints;  // of hints_file
  bool no_mmproj = false, no_hints = false, self_test = false, json = false, quiet = false;
};

void add_flags(Args& args, ConvertFlags& flags) {
  ConvertOptions& o = flags.options;
  args.words("IN OUT", &flags.words);
  args.text("to", 0, "KIND", "gguf or rdrr (default: gguf if OUT ends in .gguf, else rdrr)", &flags.to);
  args.flag("replace", 0, "put the result in the place of an OUT that exists", &o.replace);
  args.text("name", 0, "NAME", "the model's name (default: the source's)", &o.name);
  args.text("mmproj", 0, "FILE",
            "of a GGUF model: its vision tower's file (default: the one beside the model)", &flags.mmproj);
  args.flag("no-mmproj", 0, "of a Hugging Face folder to GGUF: without its vision tower", &flags.no_mmproj);
  args.texts("meta", 0, "KEY=TEXT", "a further text field; GGUF from Hugging Face only; may be repeated",
             &flags.metadata);
  args.group("Number types");
  args.text("quantize", 'q', "TYPE", "keep (default), " + formats::quant_mix_names(), &o.quantize);
  args.text("embeddings", 0, "TYPE", "of the embedding", &o.embeddings);
  args.text("lm-head", 0, "TYPE", "of the output matrix, and of an embedding tied to it", &o.lm_head);
  args.text("experts", 0, "TYPE", "of the experts' matrices", &o.experts);
  args.texts("tensor", 0, "REGEX=TYPE",
             "of the tensors whose names match; may be repeated, the last match counts", &flags.tensors);
  args.text("imatrix", 0, "FILE", "importance matrix of llama.cpp (GGUF or .dat) for the scale searches",
            &o.importance_file);
  args.group("RDRR folders");
  args.text("layout", 0, "LAYOUT",
            "flat, row or column: how the blocks of a matrix follow each other (default: row)",
            &flags.layout);
  args.flag("fuse-gate-up", 0, "gate and up matrices as one", &o.fuse_gate_up);
  args.flag("fuse-qkv", 0, "query, key and value matrices as one", &o.fuse_qkv);
  args.text("shard-size", 0, "SIZE", "of the shards: 64M (default), 1G, ...", &flags.shard_size);
  args.text("draft", 0, "MODEL", "the draft model to use with this one", &o.draft);
  args.text("hints", 0, "FILE",
            "kernel hints of a tuning that doppler tune stored: the kernels that were faster there",
            &flags.hints_file);
  args.flag("no-hints", 0, "without the kernel hints of IN", &flags.no_hints);
  args.flag("self-test", 0, "store logits of this machine's GPU, for doppler verify", &flags.self_test);
  args.text("webgpu", 0, "PROVIDER", "of the self test: dawn or wgpu", &flags.device.load.webgpu);
  args.group("Adapters");
  args.custom("lora", 0, "FILE[:SCALE]", "merge a low-rank adapter into the weights; may be repeated",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(AdapterFile file, parse_adapter(value));
                flags.adapters.push_back(std::move(file));
                return {};
              });
  args.name("base", 0, "MODEL", "of an IN that is an adapter: its base model", &flags.base);
  args.group("Work");
  args.count("threads", 't', "N", "threads (default: one a processor)", &o.threads);
  args.flag("fast", 0, "whole tensors in memory instead of some rows at a time", &o.whole_tensors);
  args.flag("json", 0, "print one JSON object", &flags.json);
  args.flag("quiet", 0, "no progress and no notes", &flags.quiet);
  add_log_flag(args);
}

Result<uint64_t> parse_size(std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (bytes && *bytes > 0 && *bytes <= formats::kRdrrMaxShardBytes) return *bytes;
  return fail(ErrorKind::kInvalidInput,
              "Flag --shard-size was given \"%s\"; it takes bytes, or a number with K, M or G.",
              printable(text).c_str());
}

// "KEY=VALUE" at the last '=', since regular expressions may hold one.
Result<> add_pair(std::string_view flag, const std::string& text,
                  std::vector<std::pair<std::string, std::string>>& to) {
  const size_t at = text.rfind('=');
  if (at != std::string::npos && at != 0 && at + 1 < text.size()) {
    to.emplace_back(text.substr(0, at), text.substr(at + 1));
    return {};
  }
  return fail(ErrorKind::kInvalidInput, "Flag --%s was given \"%s\"; it takes a pair with '=' between.",
              std::string(flag).c_str(), printable(text).c_str());
}

Result<> finish_options(ConvertFlags& flags) {
  ConvertOptions& o = flags.options;
  if (flags.words.size() != 2) {
    return fail(ErrorKind::kInvalidInput,
                "IN and OUT are needed: a GGUF file, Hugging Face folder or RDRR folder, and "
                "a new .gguf file or folder.");
  }
  o.to = flags.words[1].ends_with(".gguf") ? OutputKind::kGguf : OutputKind::kRdrr;
  if (flags.to == "gguf") {
    o.to = OutputKind::kGguf;
  } else if (flags.to == "rdrr") {
    o.to = OutputKind::kRdrr;
  } else if (!flags.to.empty()) {
    return fail(ErrorKind::kInvalidInput, "Flag --to was given \"%s\"; allowed are gguf and rdrr.",
                printable(flags.to).c_str());
  }
  if (!flags.layout.empty()) {
    using enum formats::RdrrLayout;
    for (const formats::RdrrLayout layout : {kFlat, kRow, kColumn}) {
      if (flags.layout == formats::rdrr_layout_name(layout)) o.layout = layout;
    }
    if (!o.layout) {
      return fail(ErrorKind::kInvalidInput,
                  "Flag --layout was given \"%s\"; allowed are flat, row and column.",
                  printable(flags.layout).c_str());
    }
  }
  if (!flags.shard_size.empty()) {
    DP_TRY(o.shard_bytes, parse_size(flags.shard_size));
    DP_CHECK(formats::check_rdrr_shard_bytes(o.shard_bytes, "Flag --shard-size"));
  }
  if (!flags.mmproj.empty() && o.to == OutputKind::kGguf) {
    return fail(ErrorKind::kInvalidInput,
                "--mmproj is for RDRR folders only: GGUF has vision towers in files of their own.");
  }
  if (flags.no_mmproj && o.to == OutputKind::kRdrr) {
    return fail(ErrorKind::kInvalidInput, "--no-mmproj is for GGUF files only: an RDRR folder has both.");
  }
  if (flags.self_test && o.to == OutputKind::kGguf) {
    return fail(ErrorKind::kInvalidInput, "--self-test is for RDRR folders only: GGUF has no place for it.");
  }
  if (!flags.hints_file.empty()) {
    if (o.to == OutputKind::kGguf) {
      return fail(ErrorKind::kInvalidInput, "--hints is for RDRR folders only: GGUF has no place for them.");
    }
    if (flags.no_hints) {
      return fail(ErrorKind::kInvalidInput, "Both --hints and --no-hints were given; one is allowed.");
    }
    DP_TRY(const std::string text, read_text_file(flags.hints_file));
    DP_TRY(flags.hints, engine::hints_of_tuning(text, flags.hints_file));
  }
  for (const std::string& text : flags.tensors) DP_CHECK(add_pair("tensor", text, o.tensors));
  for (const std::string& text : flags.metadata) DP_CHECK(add_pair("meta", text, o.metadata));
  return formats::check_options(o);
}

void print_report(const ConvertFlags& flags, const formats::ConvertReport& report, double seconds) {
  const std::string& out = flags.words[1];
  const char* kind = flags.options.to == OutputKind::kGguf ? "gguf" : "rdrr";
  if (flags.json) {
    Json types = Json::object();
    for (const auto& [type, count] : report.tensors_of_type) types[type] = count;
    const Json json = {{"source", flags.words[0]},
                       {"output", out},
                       {"kind", kind},
                       {"quantize", flags.options.quantize},
                       {"tensors", report.tensors},
                       {"tensors_of_type", std::move(types)},
                       {"source_bytes", report.source_bytes},
                       {"output_bytes", report.output_bytes},
                       {"resumed_bytes", report.resumed_bytes},
                       {"seconds", seconds},
                       {"self_test", flags.self_test},
                       {"kernel_hints", flags.hints ? flags.hints->size() : 0},
                       {"notes", report.notes}};
    std::printf("%s\n", to_text(json, 2).c_str());
    return;
  }
  std::string types;
  for (const auto& [type, count] : report.tensors_of_type) {
    types += format_text("%s%llu %s", types.empty() ? "" : ", ", static_cast<unsigned long long>(count),
                         type.c_str());
  }
  const std::string resumed =
      report.resumed_bytes ? " (" + format_bytes(report.resumed_bytes) + " were there already)" : "";
  std::printf("%s: %s of tensors%s in %.1f s; %s\n", out.c_str(), format_bytes(report.output_bytes).c_str(),
              resumed.c_str(), seconds, types.c_str());
}

// The numbers that only the engine can read from the source; without them where it does not know the architecture.
void add_architecture(const formats::Checkpoint& model, ConvertOptions& options) {
  const auto config = formats::read_config(model);
  if (!config) return;
  options.architecture = engine::rdrr_architecture(*config);
  options.family = config->family;
}

Result<void> merge(const AdapterFile& file, formats::Checkpoint& model) {
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(file.path));
  DP_TRY(const formats::Adapter adapter, run_now(formats::open_adapter(std::move(files))));
  DP_TRY(const formats::ModelConfig config, formats::read_config(model));
  DP_TRY(formats::FittedAdapter fitted, formats::fit_adapter(adapter, config));
  formats::put_whole_tensors(fitted, model);
  DP_TRY(const formats::ModelConfig changed,
         formats::read_config(model));  // its embeddings may not be tied any more
  auto merging = formats::merge_adapter(std::make_shared<const formats::FittedAdapter>(std::move(fitted)),
                                        file.scale, changed, model);
  return run_now(std::move(merging));
}

// GGUF's vision towers have a file of their own; an RDRR folder has both.
Result<void> join_projector(const ConvertFlags& flags, formats::Checkpoint& model) {
  std::unique_ptr<formats::FileSet> given;
  if (!flags.mmproj.empty()) {
    DP_TRY(given, formats::open_file_set(flags.mmproj));
  }
  DP_TRY(auto projector, run_now(formats::find_projector(model, std::move(given))));
  if (!projector) return {};
  if (!flags.quiet)
    std::fprintf(stderr, "doppler: The vision tower of %s goes along.\n", projector->name().c_str());
  return formats::join_projector(model, std::move(projector));
}

Result<formats::ConvertReport> convert(ConvertFlags& flags) {
  DP_TRY(auto files, formats::open_file_set(flags.words[0]));
  DP_TRY(const auto model, run_now(formats::open_checkpoint(std::move(files))));
  if (flags.options.to == OutputKind::kRdrr) {
    add_architecture(*model, flags.options);
    DP_CHECK(join_projector(flags, *model));
  } else if (!model->gguf() && !flags.no_mmproj) {
    DP_CHECK(run_now(formats::part_tower(*model, flags.options.name)));
  }
  for (const AdapterFile& adapter : flags.adapters) DP_CHECK(merge(adapter, *model));
  TransferLine line;
  formats::ConvertCallbacks callbacks;
  callbacks.stop = [] { return g_stop.load(); };
  if (!flags.quiet) {
    const std::string what = "converting " + file_name(flags.words[1]);
    callbacks.on_progress = [&line, what](uint64_t done, uint64_t total) { line.show(what, done, total); };
    callbacks.on_note = [&line](const std::string& note) {
      line.clear();
      std::fprintf(stderr, "doppler: %s\n", note.c_str());
    };
  }
  return formats::convert_model(*model, flags.words[1], flags.options, callbacks);
}

// --hints and --no-hints, on the finished folder.
Result<void> set_hints(const ConvertFlags& flags) {
  if ((!flags.hints && !flags.no_hints) || flags.options.to == OutputKind::kGguf) return {};
  const std::string& folder = flags.words[1];
  DP_TRY(auto files, formats::open_file_set(folder));
  DP_TRY(const auto model, run_now(formats::open_checkpoint(std::move(files))));
  formats::RdrrManifest changed = *model->rdrr();
  changed.kernel_hints = flags.hints;
  return formats::rewrite_rdrr_manifest(folder, std::move(changed));
}

}  // namespace

int convert_verb(std::span<const std::string> arguments) {
  ConvertFlags flags;
  Args args(
      "doppler convert [flags] IN OUT",
      "Converts a model: a GGUF file, Hugging Face folder or RDRR folder to a .gguf file or an RDRR folder, "
      "quantised as asked. The same command goes on after an interruption. Or an adapter: a PEFT folder to a "
      ".gguf "
      "file, a GGUF adapter to a PEFT folder.");
  add_flags(args, flags);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (const Result<bool> is_adapter = names_adapter(flags.words); !is_adapter || *is_adapter) {
    if (!is_adapter) return exit_failed(is_adapter.error());
    return convert_adapter({.words = flags.words, .base = flags.base, .replace = flags.options.replace});
  }
  if (auto checked = finish_options(flags); !checked) return exit_usage(checked.error());
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const auto start = std::chrono::steady_clock::now();
  const auto report = convert(flags);
  if (!report) return exit_failed(report.error());
  if (const auto set = set_hints(flags); !set) return exit_failed(set.error());
  if (flags.self_test) {
    if (const auto added = add_self_test(flags.words[1], flags.device); !added)
      return exit_failed(added.error());
  }
  print_report(flags, *report,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return 0;
}

}  // namespace doppler::cli
