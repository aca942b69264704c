#include "capi/structs.h"

#include <cstddef>
#include <iterator>

namespace doppler::capi {
namespace {

// A struct must not end in padding: a member added later would lie in it, and the size would not tell.
template <class Struct, class Last>
constexpr bool ends_with(Last Struct::*, size_t offset) {
  return offset + sizeof(Last) == sizeof(Struct);
}
#define DP_ENDS_WITH(type, last) static_assert(ends_with(&type::last, offsetof(type, last)))
DP_ENDS_WITH(doppler_load_options, pan_and_scan);
DP_ENDS_WITH(doppler_model_info, load_seconds);
DP_ENDS_WITH(doppler_generate_options, adapter_count);
DP_ENDS_WITH(doppler_timings, preemptions);
DP_ENDS_WITH(doppler_request, deadline_seconds);
DP_ENDS_WITH(doppler_scheduler_load, lost_devices);

// A truth value that a struct has as a number, so that it ends without padding.
Result<bool> truth_of(const char* field, uint64_t given) {
  if (given <= 1) return given == 1;
  return fail(ErrorKind::kInvalidInput, "%s is %llu; allowed are 0 and 1.", field,
              static_cast<unsigned long long>(given));
}

doppler_load_options default_load_options() {
  const LoadOptions defaults;
  doppler_load_options out = {};
  out.size = sizeof(out);
  out.ctx_len = defaults.ctx_len;
  out.chunk = defaults.chunk;
  out.sequences = defaults.sequences;
  out.pool_tokens = defaults.pool_tokens;
  out.cache_host_bytes = defaults.cache_host_bytes;
  out.ring = defaults.ring;
  out.tuned = defaults.tuned;
  out.verify = defaults.verify;
  return out;
}

doppler_generate_options default_generate_options() {
  const GenerateOptions defaults;
  const SamplingOptions& sampling = defaults.sampling;
  doppler_generate_options out = {};
  out.size = sizeof(out);
  out.temperature = sampling.temperature;
  out.top_k = sampling.top_k;
  out.top_p = sampling.top_p;
  out.min_p = sampling.min_p;
  out.repeat_penalty = sampling.repeat_penalty;
  out.presence_penalty = sampling.presence_penalty;
  out.frequency_penalty = sampling.frequency_penalty;
  out.seed = sampling.seed;
  out.min_tokens = sampling.min_tokens;
  out.top_n_sigma = sampling.top_n_sigma;
  out.typical_p = sampling.typical_p;
  out.xtc_probability = sampling.xtc_probability;
  out.xtc_threshold = sampling.xtc_threshold;
  out.dynatemp_range = sampling.dynatemp_range;
  out.dynatemp_exponent = sampling.dynatemp_exponent;
  out.mirostat_tau = sampling.mirostat_tau;
  out.mirostat_eta = sampling.mirostat_eta;
  out.dry_multiplier = sampling.dry_multiplier;
  out.dry_base = sampling.dry_base;
  out.dry_allowed_length = sampling.dry_allowed_length;
  out.dry_range = sampling.dry_range;
  out.max_tokens = defaults.max_tokens;
  out.when_full = static_cast<doppler_when_full>(defaults.when_full);
  out.batch = defaults.batch;
  out.readback_interval = defaults.readback_interval;
  out.ignore_eos = defaults.ignore_eos;
  out.stop_on_device = defaults.stop_on_device;
  out.add_special = defaults.add_special;
  out.logprobs = defaults.logprobs;
  out.top_logprobs = defaults.top_logprobs;
  return out;
}

// A text that is NULL leaves what there is.
void set_text(std::string& target, const char* text) {
  if (text) target = text;
}

// list[0] to list[count - 1] of a struct's member; no entry may be NULL.
Result<std::vector<std::string>> texts(const char* member, const char* const* list, size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    if (!list || !list[i]) {
      return fail(ErrorKind::kInvalidInput, "%s%s is NULL; %zu texts are announced.", member,
                  list ? format_text("[%zu]", i).c_str() : "", count);
    }
    out.emplace_back(list[i]);
  }
  return out;
}

Result<std::vector<AdapterFile>> adapter_files(const doppler_load_options& given) {
  std::vector<AdapterFile> out;
  for (size_t i = 0; i < given.adapter_count; ++i) {
    if (!given.adapters || !given.adapters[i].path) {
      return fail(ErrorKind::kInvalidInput, "adapters%s is NULL; %zu adapters are announced.",
                  given.adapters ? format_text("[%zu].path", i).c_str() : "", given.adapter_count);
    }
    const doppler_adapter& adapter = given.adapters[i];
    out.push_back({.path = adapter.path, .scale = adapter.scale, .name = adapter.name ? adapter.name : ""});
  }
  return out;
}

Result<std::optional<std::vector<AdapterUse>>> adapter_uses(const doppler_generate_options& given) {
  if (!given.adapters && given.adapter_count == 0) return std::optional<std::vector<AdapterUse>>();
  std::vector<AdapterUse> out;
  for (size_t i = 0; i < given.adapter_count; ++i) {
    if (!given.adapters || !given.adapters[i].name) {
      return fail(ErrorKind::kInvalidInput, "adapters%s is NULL; %zu adapters are announced.",
                  given.adapters ? format_text("[%zu].name", i).c_str() : "",
                  static_cast<size_t>(given.adapter_count));
    }
    out.push_back({.name = given.adapters[i].name, .scale = given.adapters[i].scale});
  }
  return std::optional(std::move(out));
}

Result<Grammar> grammar_of(const doppler_generate_options& given) {
  static constexpr GrammarKind kKinds[] = {GrammarKind::kNone, GrammarKind::kJsonSchema, GrammarKind::kRegex,
                                           GrammarKind::kGrammar};
  const auto kind = static_cast<size_t>(given.grammar_kind);
  if (kind >= std::size(kKinds)) {
    return fail(ErrorKind::kInvalidInput, "grammar_kind is %d; allowed are %d to %d.",
                static_cast<int>(given.grammar_kind), DOPPLER_GRAMMAR_NONE, DOPPLER_GRAMMAR_TEXT);
  }
  if ((given.grammar != nullptr) != (given.grammar_kind != DOPPLER_GRAMMAR_NONE)) {
    return fail(ErrorKind::kInvalidInput, "grammar is %s, but grammar_kind is %d.",
                given.grammar ? "set" : "NULL", static_cast<int>(given.grammar_kind));
  }
  return Grammar{.kind = kKinds[kind], .text = given.grammar ? given.grammar : "", .source = {}};
}

}  // namespace

Result<LoadOptions> load_options(const doppler_load_options* options) {
  DP_TRY(const doppler_load_options given,
         read_struct("doppler_load_options", options, default_load_options()));
  LoadOptions out;
  set_text(out.webgpu, given.webgpu);
  set_text(out.device, given.device);
  set_text(out.split_mode, given.split_mode);
  set_text(out.lane, given.lane);
  set_text(out.kv, given.kv);
  set_text(out.draft, given.draft);
  set_text(out.draft_model, given.draft_model);
  set_text(out.mmproj, given.mmproj);
  set_text(out.cache_dir, given.cache_dir);
  set_text(out.chat_template, given.chat_template);
  DP_TRY(const std::vector<std::string> kernels, texts("kernels", given.kernels, given.kernel_count));
  for (const std::string& kernel : kernels) {
    const size_t equals = kernel.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorKind::kInvalidInput, "Kernel \"%s\" is not of the form OPERATION=VARIANT.",
                  printable(kernel).c_str());
    }
    out.kernels[kernel.substr(0, equals)] = kernel.substr(equals + 1);
  }
  DP_TRY(out.rules, texts("rules", given.rules, given.rule_count));
  out.ctx_len = given.ctx_len;
  out.chunk = given.chunk;
  out.sequences = given.sequences;
  out.pool_tokens = given.pool_tokens;
  out.cache_host_bytes = given.cache_host_bytes;
  out.ring = given.ring;
  out.tuned = given.tuned;
  out.verify = given.verify;
  DP_TRY(out.layer_table_on_host, truth_of("layer_table_on_host", given.layer_table_on_host));
  DP_TRY(out.pan_and_scan, truth_of("pan_and_scan", given.pan_and_scan));
  DP_TRY(out.adapters, adapter_files(given));
  out.adapter_slots = given.adapter_slots;
  out.adapter_rank = given.adapter_rank;
  out.expert_bytes = given.expert_bytes;
  if (given.on_progress) {
    out.progress = [progress = given.on_progress, data = given.progress_data](std::string_view stage,
                                                                              uint64_t done, uint64_t total) {
      return progress(data, std::string(stage).c_str(), done, total);
    };
  }
  return out;
}

Result<GenerateOptions> generate_options(const doppler_generate_options* options) {
  DP_TRY(const doppler_generate_options given,
         read_struct("doppler_generate_options", options, default_generate_options()));
  GenerateOptions out;
  SamplingOptions& sampling = out.sampling;
  sampling.temperature = given.temperature;
  sampling.top_k = given.top_k;
  sampling.top_p = given.top_p;
  sampling.min_p = given.min_p;
  sampling.repeat_penalty = given.repeat_penalty;
  sampling.presence_penalty = given.presence_penalty;
  sampling.frequency_penalty = given.frequency_penalty;
  sampling.seed = given.seed;
  sampling.min_tokens = given.min_tokens;
  sampling.top_n_sigma = given.top_n_sigma;
  sampling.typical_p = given.typical_p;
  sampling.xtc_probability = given.xtc_probability;
  sampling.xtc_threshold = given.xtc_threshold;
  sampling.dynatemp_range = given.dynatemp_range;
  sampling.dynatemp_exponent = given.dynatemp_exponent;
  sampling.mirostat_tau = given.mirostat_tau;
  sampling.mirostat_eta = given.mirostat_eta;
  sampling.dry_multiplier = given.dry_multiplier;
  sampling.dry_base = given.dry_base;
  sampling.dry_allowed_length = given.dry_allowed_length;
  sampling.dry_range = given.dry_range;
  if (given.dry_breakers) {
    DP_TRY(sampling.dry_breakers, texts("dry_breakers", given.dry_breakers, given.dry_breaker_count));
  }
  if (!given.logit_bias && given.logit_bias_count != 0) {
    return fail(ErrorKind::kInvalidInput, "logit_bias is NULL; %zu biases are announced.",
                given.logit_bias_count);
  }
  for (size_t i = 0; i < given.logit_bias_count; ++i) {
    sampling.logit_bias.emplace_back(given.logit_bias[i].token, given.logit_bias[i].bias);
  }
  DP_TRY(out.stop, texts("stop", given.stop, given.stop_count));
  out.max_tokens = given.max_tokens;
  if (given.when_full != DOPPLER_FULL_STOP && given.when_full != DOPPLER_FULL_SLIDE) {
    return fail(ErrorKind::kInvalidInput, "when_full is %d; allowed are %d (stop) and %d (slide).",
                static_cast<int>(given.when_full), DOPPLER_FULL_STOP, DOPPLER_FULL_SLIDE);
  }
  out.when_full = static_cast<WhenFull>(given.when_full);
  DP_TRY(out.grammar, grammar_of(given));
  set_text(out.draft, given.draft);
  set_text(out.prediction, given.prediction);
  if (given.draft_rows > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "draft_rows is %llu; allowed is 0 to 8.",
                static_cast<unsigned long long>(given.draft_rows));
  }
  out.draft_rows = static_cast<uint32_t>(given.draft_rows);
  DP_TRY(out.adapters, adapter_uses(given));
  out.batch = given.batch;
  out.readback_interval = given.readback_interval;
  out.logprobs = given.logprobs;
  out.top_logprobs = given.top_logprobs;
  out.ignore_eos = given.ignore_eos;
  out.stop_on_device = given.stop_on_device;
  out.add_special = given.add_special;
  return out;
}

Result<std::vector<Message>> messages_of(const doppler_message* messages, size_t count) {
  std::vector<Message> out;
  for (size_t i = 0; i < count; ++i) {
    if (!messages[i].role || !messages[i].content) {
      return fail(ErrorKind::kInvalidInput, "Message %zu has no %s: it is NULL.", i,
                  messages[i].role ? "content" : "role");
    }
    out.push_back({messages[i].role, messages[i].content});
  }
  return out;
}

Result<Request> request_of(const doppler_request* request) {
  DP_TRY(const doppler_request given, read_struct("doppler_request", request, {}));
  const int prompts = (given.text != nullptr) + (given.tokens != nullptr) + (given.messages != nullptr);
  if (prompts != 1) {
    return fail(ErrorKind::kInvalidInput,
                "%d of text, tokens and messages of doppler_request are set; exactly one of the three makes "
                "a prompt.",
                prompts);
  }
  Request out;
  if (given.text) {
    out.prompt = std::string(given.text);
  } else if (given.tokens) {
    out.prompt = std::vector<int32_t>(given.tokens, given.tokens + given.token_count);
  } else {
    DP_TRY(out.prompt, messages_of(given.messages, given.message_count));
  }
  DP_TRY(out.options, generate_options(given.options));
  out.client = given.client;
  out.priority = given.priority;
  out.deadline_seconds = given.deadline_seconds;
  return out;
}

TextCallback text_callback(doppler_on_text on_text, void* data) {
  if (!on_text) return {};
  return [on_text, data](std::string_view text) {
    return on_text(data, std::string(text).c_str(), text.size());  // a view need not end with a NUL
  };
}

}  // namespace doppler::capi

void doppler_load_options_init(doppler_load_options* options, size_t size) {
  doppler::capi::init_struct(options, size, doppler::capi::default_load_options());
}

void doppler_generate_options_init(doppler_generate_options* options, size_t size) {
  doppler::capi::init_struct(options, size, doppler::capi::default_generate_options());
}
