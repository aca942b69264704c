// doppler inspect: what is in a model file, whether this build runs it and what memory that takes. Works for
// models that it cannot run too, and without a GPU. Read next: inspection.h.
#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/adapter_flags.h"
#include "cli/common.h"
#include "cli/dry_run.h"
#include "cli/inspect_adapter.h"
#include "cli/inspection.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "families/families.h"
#include "formats/rdrr/manifest.h"

namespace doppler::cli {
namespace {

struct InspectFlags {
  std::vector<std::string> words;
  std::string synthetic, kv = "f16";
  uint32_t ctx_len = 0;
  bool json = false, tensors = false, show_template = false, architectures = false;
};

std::string count_text(uint64_t count) {
  static constexpr std::pair<double, const char*> kUnits[] = {{1e9, " B"}, {1e6, " M"}, {1e3, " K"}};
  for (const auto& [unit, name] : kUnits) {
    if (static_cast<double>(count) >= unit)
      return format_text("%.2f%s", static_cast<double>(count) / unit, name);
  }
  return std::to_string(count);
}

std::string number_text(uint64_t number) { return std::to_string(number); }

Result<Inspection> inspect(const InspectFlags& flags) {
  Inspection found;
  DP_TRY(found.checkpoint, open_named_checkpoint(flags.words.empty() ? "" : flags.words[0], flags.synthetic));
  for (const formats::TensorInfo& tensor : found.checkpoint->tensors()) {
    for (TypeShare* share : {&found.types[dtype_info(tensor.type).name], &found.total}) {
      ++share->tensors;
      share->parameters += parameters_of(tensor);
      share->bytes += tensor.bytes;
    }
  }
  DP_TRY(found.text, run_now(engine::load_text_model(*found.checkpoint, "")));
  found.config = formats::read_config(*found.checkpoint);
  if (found.config) {
    if (auto runs = families::check_has_forward_pass(*found.config); !runs)
      found.config = forward(runs.error());
  }
  if (found.config) {
    found.kv = flags.kv;
    found.ctx_len =
        flags.ctx_len != 0 ? flags.ctx_len : std::min(found.config->ctx_len, model::kDefaultCtxLen);
    const auto format = kernels::cache_format_of(flags.kv).value_or(kernels::CacheFormat::kF16);
    DP_CHECK(model::check_cache_format(*found.config, format));
    const uint32_t chunk = std::min(model::kDefaultChunk, found.ctx_len);
    const model::CacheLengths lengths{.ctx_len = found.ctx_len,
                                      .ring_len = model::ring_positions(*found.config, found.ctx_len, chunk)};
    found.memory =
        model::estimate_memory(*found.config, *found.checkpoint,
                               formats::LayoutPolicy{.exact = false, .tiles = true}, lengths, chunk, format);
  }
  return found;
}

void print_config(const formats::ModelConfig& c) {
  Table table({"Architecture", ""});
  table.add({"family", c.family + (c.synthetic ? " (SYNTHETIC: random weights)" : "")});
  table.add({"layers", number_text(c.n_layers) +
                           (c.next_layers ? format_text(", %u for further tokens", c.next_layers) : "")});
  table.add({"hidden", number_text(c.hidden_dim)});
  table.add({"heads", format_text("%u of %u, %u for keys and values", c.n_heads, c.head_dim, c.n_kv_heads)});
  table.add({"feed-forward", number_text(c.ffn_dim)});
  table.add({"vocabulary", number_text(c.vocab_size) + (c.tied_embeddings ? ", embeddings tied" : "")});
  table.add({"context", number_text(c.ctx_len) +
                            (c.sliding_window ? format_text(", sliding window %u", c.sliding_window) : "")});
  table.add({"rope", rope_text(c.rope)});
  std::printf("\n%s", table.text().c_str());
}

void print_memory(const Inspection& found) {
  Table table({"Memory on the device", ""});
  table.add({"weights", format_bytes(found.memory.weight_bytes)});
  table.add({"cache", format_text("%s (%u tokens, %s%s)", format_bytes(found.memory.cache_bytes).c_str(),
                                  found.ctx_len, found.kv.c_str(), ring_text(found.memory).c_str())});
  table.add({"scratch", format_bytes(found.memory.scratch_bytes)});
  table.add({"total", format_bytes(found.memory.total())});
  std::printf("\n%s", table.text().c_str());
}

void print_text_side(const engine::TextModel& text) {
  if (text.tokenizer) {
    Table table({"Tokenizer", ""});
    table.add({"kind", tokenizer::vocab_kind_name(text.tokenizer->kind())});
    table.add({"tokens", number_text(text.tokenizer->vocab_size())});
    for (const auto& [name, id] : special_tokens(*text.tokenizer)) {
      table.add({name, format_text("%d %s", id, printable(text.tokenizer->token_text(id)).c_str())});
    }
    std::printf("\n%s", table.text().c_str());
  } else {
    std::printf("\nTokenizer: none that can be used. %s\n", text.tokenizer_problem.c_str());
  }
  if (text.templates.chat.source.empty()) {
    std::printf("\nChat template: none\n");
  } else if (text.templates.chat.problem.empty()) {
    std::printf("\nChat template: %s (--template prints it)\n",
                format_bytes(text.templates.chat.source.size()).c_str());
  } else {
    std::printf("\nChat template: it cannot be used. %s\n", text.templates.chat.problem.c_str());
  }
}

std::string value_text(const formats::GgufValue& value, uint64_t i) {
  if (const auto text = value.string(i)) return "\"" + printable(*text) + "\"";
  if (const auto boolean = value.boolean(i)) return *boolean ? "true" : "false";
  if (const auto integer = value.integer(i)) return std::to_string(*integer);
  if (const auto number = value.number(i)) return format_text("%g", *number);
  return std::string("(") + formats::gguf_type_name(value.element_type()) + ")";
}

std::string value_text(const formats::GgufValue& value) {
  if (!value.is_array()) return value_text(value, 0);
  std::string out = "[";
  const uint64_t shown = std::min(value.count(), kShownElements);
  for (uint64_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + value_text(value, i);
  if (shown < value.count())
    out += format_text(", ... %llu in all", static_cast<unsigned long long>(value.count()));
  return out + "]";
}

void print_metadata(const formats::Checkpoint& checkpoint) {
  Table table({"Metadata", ""});
  if (const formats::GgufFile* gguf = checkpoint.gguf()) {
    for (const auto& entry : gguf->metadata()) table.add({printable(entry.key), value_text(entry.value)});
  } else {
    for (const auto& [key, value] : checkpoint.config().items())
      table.add({printable(key), printable(to_text(value))});
  }
  std::printf("\n%s", table.text().c_str());
}

void print_types(const Inspection& found) {
  Table table({"Types", ">tensors", ">parameters", ">size", ">bits a parameter"});
  const auto add = [&](const std::string& name, const TypeShare& share) {
    const double bits = share.parameters == 0
                            ? 0
                            : 8.0 * static_cast<double>(share.bytes) / static_cast<double>(share.parameters);
    table.add({name, number_text(share.tensors), count_text(share.parameters), format_bytes(share.bytes),
               format_text("%.2f", bits)});
  };
  for (const auto& [name, share] : found.types) add(name, share);
  if (found.types.size() > 1) add("all", found.total);
  std::printf("\n%s", table.text().c_str());
}

void print_tensors(const formats::Checkpoint& checkpoint) {
  Table table({"Tensors", "type", "shape", ">size"});
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    table.add({printable(tensor.name), dtype_info(tensor.type).name, shape_text(tensor.shape),
               format_bytes(tensor.bytes)});
  }
  std::printf("\n%s", table.text().c_str());
}

std::string tensor_format_name(const formats::Checkpoint& checkpoint) {
  const formats::GgufFile* gguf = checkpoint.gguf();
  const std::string source =
      gguf ? format_text("GGUF version %u", gguf->version()) : std::string("Hugging Face folder");
  const formats::RdrrManifest* rdrr = checkpoint.rdrr();
  return rdrr ? format_text("RDRR version %u.%u made from a ", rdrr->major, rdrr->minor) + source : source;
}

void print(const Inspection& found, const InspectFlags& flags) {
  const formats::Checkpoint& checkpoint = *found.checkpoint;
  std::printf("%s: %s, %s parameters, %s\n", printable(checkpoint.name(), 4096).c_str(),
              tensor_format_name(checkpoint).c_str(), count_text(found.total.parameters).c_str(),
              format_bytes(found.total.bytes).c_str());
  if (const formats::RdrrManifest* rdrr = checkpoint.rdrr(); rdrr && rdrr->draft) {
    std::printf("Draft model: %s (this build does not use one)\n",
                printable(rdrr->draft->model, 300).c_str());
  }
  if (found.config) {
    print_config(*found.config);
    print_memory(found);
  } else {
    std::printf("\nThis build cannot run it: %s\n", found.config.error().message().c_str());
  }
  print_text_side(found.text);
  print_types(found);
  print_metadata(checkpoint);
  if (flags.tensors) print_tensors(checkpoint);
}

}  // namespace

Result<Inspection> inspect_model(const std::string& model) {
  InspectFlags flags;
  flags.words = {model};
  return inspect(flags);
}

void print_inspection(const Inspection& found) { print(found, {}); }

std::vector<std::pair<const char*, int32_t>> special_tokens(const tokenizer::Tokenizer& tokenizer) {
  std::vector<std::pair<const char*, int32_t>> all = {{"bos", tokenizer.bos()}, {"eos", tokenizer.eos()},
                                                      {"eot", tokenizer.eot()}, {"unk", tokenizer.unk()},
                                                      {"sep", tokenizer.sep()}, {"pad", tokenizer.pad()}};
  std::erase_if(all, [](const auto& named) { return named.second == tokenizer::kNoToken; });
  return all;
}

const char* rope_scaling_name(formats::RopeScaling scaling) {
  switch (scaling) {
    case formats::RopeScaling::kNone:
      return "none";
    case formats::RopeScaling::kLinear:
      return "linear";
    case formats::RopeScaling::kLlama3:
      return "llama3";
    case formats::RopeScaling::kYarn:
      return "yarn";
    case formats::RopeScaling::kLongRope:
      return "longrope";
    case formats::RopeScaling::kProportional:
      return "proportional";
    case formats::RopeScaling::kDynamic:
      return "dynamic";
  }
  return "?";
}

std::string rope_text(const formats::RopeConfig& rope) {
  std::string out = format_text("theta %g, %u dimensions, %s pairs", rope.theta, rope.rotary_dim,
                                rope_pairing_name(rope.pairing));
  if (rope.scaling != formats::RopeScaling::kNone) {
    out += format_text(", %s scaling by %g", rope_scaling_name(rope.scaling), rope.factor);
  }
  if (!rope.frequency_divisors.empty())
    out += ", frequencies divided by " + printable(rope.frequency_divisors);
  return out;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string out;
  for (const uint64_t size : shape) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out.empty() ? "scalar" : out;
}

uint64_t parameters_of(const formats::TensorInfo& tensor) {
  uint64_t count = 1;
  for (const uint64_t size : tensor.shape) count *= size;  // opening has checked that it fits
  return count;
}

int inspect_verb(std::span<const std::string> arguments) {
  InspectFlags flags;
  Args args("doppler inspect [flags] [FILE]",
            "Shows the contents and the needs of a model (GGUF file or Hugging Face folder; default: the "
            "shipped model), or of an adapter, whose fit to a model named after it is checked.");
  args.words("FILE", &flags.words);
  args.text("synthetic", 0, "SHAPE:QUANT", "a synthetic model instead of a file (doppler synth --list)",
            &flags.synthetic);
  args.count("ctx", 'c', "TOKENS", "context of the memory estimate (default: the model's, at most 4096)",
             &flags.ctx_len);
  add_kv_flag(args, "cache of the memory estimate: f16 (default), f32 or q8_0", &flags.kv);
  args.flag("tensors", 't', "list every tensor (--json always does)", &flags.tensors);
  args.flag("template", 0, "print the chat template and nothing else", &flags.show_template);
  args.flag("architectures", 0, "list the names that files of each family use, instead of a model",
            &flags.architectures);
  args.flag("json", 0, "print one JSON object", &flags.json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.architectures) {
    print_architectures(flags.json);
    return 0;
  }
  const Result<bool> is_adapter = names_adapter(flags.words);
  if (!is_adapter) return exit_failed(is_adapter.error());
  if (*is_adapter && flags.words.size() <= 2) {
    const auto printed =
        print_adapter(flags.words[0], flags.words.size() == 2 ? flags.words[1] : "", flags.json);
    return printed ? 0 : exit_failed(printed.error());
  }
  if (flags.words.size() > 1) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Several files were given; one is inspected at a time."));
  }
  if (!flags.words.empty() && !flags.synthetic.empty()) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Both a file and --synthetic were given; one is needed."));
  }

  auto found = inspect(flags);
  if (!found) return exit_failed(found.error());
  if (flags.show_template) {
    if (found->text.templates.chat.source.empty()) {
      return exit_failed(Error(ErrorKind::kUnsupported, "The model has no chat template."));
    }
    std::printf("%s\n", found->text.templates.chat.source.c_str());
  } else if (flags.json) {
    std::printf("%s\n", to_text(inspection_json(*found), 2).c_str());
  } else {
    print(*found, flags);
  }
  return 0;
}

}  // namespace doppler::cli
