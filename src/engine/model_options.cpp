#include "engine/model_options.h"

namespace doppler {

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
      return "end-of-text";
    case StopReason::kStopString:
      return "stop-string";
    case StopReason::kTokenLimit:
      return "token-limit";
    case StopReason::kContextFull:
      return "context-full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace doppler

namespace doppler::engine {
namespace {

// Blocks on their way to the host's cache at a time; what leaves the pool beyond that is forgotten.
constexpr uint32_t kBlockReads = 16;

}  // namespace

Result<model::Drafting> drafting_of(std::string_view word) {
  for (const auto& [known, drafting] :
       {std::pair<std::string_view, model::Drafting>{"auto", model::Drafting::kAuto},
        {"off", model::Drafting::kOff},
        {"lookup", model::Drafting::kLookup},
        {"next", model::Drafting::kNext},
        {"model", model::Drafting::kModel}}) {
    if (word == known) return drafting;
  }
  return fail(ErrorKind::kInvalidInput,
              "Drafter \"%s\" is not known; allowed are auto, off, lookup, next and model.",
              printable(word).c_str());
}

Result<formats::Pooling> pooling_of(std::string_view kind) {
  for (const formats::Pooling known :
       {formats::Pooling::kMean, formats::Pooling::kCls, formats::Pooling::kLast}) {
    if (kind == formats::pooling_name(known)) return known;
  }
  return fail(ErrorKind::kInvalidInput, "Pooling \"%s\" is not known; allowed are mean, cls and last.",
              printable(kind).c_str());
}

Result<model::RunnerOptions> runner_options(const LoadOptions& options) {
  model::RunnerOptions out;
  DP_TRY(out.policy, kernels::make_policy(options.lane));
  for (const auto& [operation, variant] : options.kernels) out.policy.forced[operation] = variant;
  for (const std::string& rule : options.rules) DP_CHECK(out.rules.set(rule));
  const std::optional<kernels::CacheFormat> format = kernels::cache_format_of(options.kv);
  if (!format) {
    return fail(ErrorKind::kInvalidInput, "Cache format \"%s\" is not known; allowed are f16, f32 and q8_0.",
                printable(options.kv).c_str());
  }
  const bool is_exact = out.policy.name == "exact" && *format == kernels::CacheFormat::kF16;
  out.cache_format = is_exact ? kernels::CacheFormat::kF32 : *format;
  out.ctx_len = options.ctx_len;
  if (!options.pooling.empty()) {
    DP_TRY(out.pooling, pooling_of(options.pooling));
  }
  DP_TRY(out.drafting, drafting_of(options.draft));
  if (out.drafting == model::Drafting::kModel && options.draft_model.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "The drafter model was asked for, but no draft model is given (--draft-model).");
  }
  if (options.draft_acceptance > 1) {
    return fail(ErrorKind::kInvalidInput, "A share of %g right drafts was asked for; allowed is 0 to 1.",
                static_cast<double>(options.draft_acceptance));
  }
  out.simulated_drafts = options.draft_acceptance;
  out.chunk = options.chunk;
  out.images = options.images;
  out.pan_and_scan = options.pan_and_scan;
  out.tickets = options.ring;
  out.expert_bytes = options.expert_bytes;
  out.layer_table_on_host = options.layer_table_on_host;
  if (options.sequences == 0 || options.sequences > kernels::kMaxSequences) {
    return fail(ErrorKind::kInvalidInput, "%u sequences at once were asked for; allowed are 1 to %u.",
                options.sequences, kernels::kMaxSequences);
  }
  if (options.sequences > 1) {
    out.max_sequences = options.sequences;
    out.pool_tokens = options.pool_tokens;
    if (options.cache_host_bytes > 0) {
      out.block_reads = kBlockReads;
      out.rings = false;  // what goes to the host is whole
    }
  }
  return out;
}

LoadReport describe_load(const LoadedModel& loaded, const gpu::Caps& caps) {
  const model::LoadTimes& times = loaded.runner->load_times();
  return {.seconds = loaded.load_seconds,
          .weights_seconds = times.weights_seconds,
          .copy_seconds = times.copy_seconds,
          .pipelines_seconds = times.pipelines_seconds,
          .repacked_bytes = times.bytes.repacked,
          .copied_bytes = times.bytes.copied,
          .rearranged_bytes = times.bytes.rearranged,
          .uploads = upload_way_name(caps.uploads),
          .pipelines = times.pipelines,
          .blobs_found = times.blobs_found,
          .blobs_stored = times.blobs_stored};
}

ModelInfo describe(const LoadedModel& loaded, const gpu::Device& device) {
  const model::DeviceModel& runner = *loaded.runner;
  const formats::ModelConfig& config = runner.config();
  const bool is_embedding = formats::is_embedding_model(config);
  const bool gives_scores = is_embedding && config.pooling.n_classes != 0;
  return {.name = config.name,
          .architecture = config.architecture,
          .adapter = device.caps().adapter,
          .provider = device.caps().provider,
          .synthetic = config.synthetic,
          .embedding_dim = is_embedding && !gives_scores ? formats::output_dim(config) : 0,
          .gives_scores = gives_scores,
          .pooling = formats::pooling_name(config.pooling.kind),
          .vocab_size = config.vocab_size,
          .ctx_len = runner.ctx_len(),
          .trained_ctx_len = config.ctx_len,
          .n_layers = config.n_layers,
          .weight_bytes = runner.memory().weight_bytes,
          .cache_bytes = runner.memory().cache_bytes,
          .scratch_bytes = runner.memory().scratch_bytes,
          .load = describe_load(loaded, device.caps()),
          .has_tokenizer = loaded.text.tokenizer != nullptr,
          .has_chat_template = loaded.text.templates.chat.parsed.has_value(),
          .reads_images = runner.options().images};
}

ExpertPaging paging_of(const LoadedModel& loaded) {
  const model::ExpertPager* const pager = loaded.runner->pager();
  if (!pager) return {};
  const model::PagingFigures& figures = pager->figures();
  return {.slots = pager->shape().n_slots,
          .experts = pager->shape().n_experts,
          .uses = figures.uses,
          .misses = figures.misses,
          .bytes = figures.bytes,
          .upload_seconds = figures.upload_seconds,
          .wait_seconds = figures.wait_seconds};
}

Counters counters_since_load(const LoadedModel& loaded, const gpu::Device& device) {
  const gpu::Counters& now = device.counters();
  const gpu::Counters& before = loaded.after_load;
  return {.submits = now.submits - before.submits,
          .dispatches = now.dispatches - before.dispatches,
          .readback_bytes = now.readback_bytes - before.readback_bytes,
          .objects_created = (now.buffers_created - before.buffers_created) +
                             (now.bind_groups_created - before.bind_groups_created) +
                             (now.pipelines_created - before.pipelines_created) -
                             loaded.runner->objects_created_later(),
          .experts = paging_of(loaded)};
}

}  // namespace doppler::engine
