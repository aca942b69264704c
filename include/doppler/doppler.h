// Doppler's public C++ API: load a model, open a session, generate.
//
//   auto model = doppler::Model::load("model.gguf", {});
//   if (!model) return report(model.error().message());
//   auto session = model->new_session();
//   auto answer = session.generate("The fox and the crow", {}, [](std::string_view text) { print(text);
//   return true; });
//
// Calls block until they are done. A Model and its sessions belong to one thread at a time, unless it was loaded for
// several sequences (LoadOptions::sequences) or has a scheduler: then each session may have a thread of its own.
// cancel() may come from any thread. Many requests at once, with priorities and streams: scheduler.h. Link with
// find_package(doppler) and the target doppler::doppler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doppler/image.h"
#include "doppler/result.h"

namespace doppler {

// stage: "weights" (done and total in bytes) or "kernels" (pipelines). Return false to stop: load() ends with
// ErrorKind::kCancelled, at once among weights, among kernels when all are compiled.
using ProgressCallback = std::function<bool(std::string_view stage, uint64_t done, uint64_t total)>;

// A low-rank adapter (LoRA): a PEFT folder or a GGUF file.
struct AdapterFile {
  std::string path;
  float scale = 1;  // times its own scale
  // If empty, all answers have the adapter. Otherwise an answer asks for it by this name (GenerateOptions::adapters).
  std::string name = {};
};

struct LoadOptions {
  std::string webgpu;  // provider: "", "dawn", "wgpu" or the path of a library
  std::string device;  // "", an index of `doppler devices`, part of a name, or several: "0,1", "all"
  // The share of each of several devices. "none": each has the whole model, and requests go to all. "layer": each has
  // some of the layers. "auto": "none" if each device has room for the model, or else "layer".
  std::string split_mode = "auto";
  std::string lane = "fast";  // "exact", "fast", "portable", "subgroups", "dp4a", "matrix", "persistent"
  // The drafter, which guesses tokens that the next step checks if that is faster. The text does not change. "lookup"
  // searches the text for its own last tokens, "next" is the model's next-token layer, and "model" is the draft model.
  // "off" guesses no tokens. "auto" is "model" or "next" if it is there, and "lookup" otherwise. A generation may
  // choose another drafter.
  std::string draft = "auto";
  std::string draft_model;      // path of a small model of the same vocabulary, for draft "model"
  float draft_acceptance = -1;  // for measurements, 0 to 1: this share of guesses counts as right
  std::string kv = "f16";       // cache: "f16", "f32" or "q8_0"; for "f16" the exact lane takes f32
  uint32_t ctx_len = 0;         // tokens; 0: what the model was trained for, at most 4096
  uint32_t chunk = 0;           // tokens of a prefill chunk; 0: 512
  // Sequences that may be decoded together, 1 to 64. With 1 the model has kernels for one sequence, which are the
  // fastest for it. Sessions and requests then take turns, and each switch evaluates again what differs. With more,
  // each has its own sequence.
  uint32_t sequences = 1;
  // Tokens of all sequences' caches together; 0: ctx_len for each, or as many as fit the device.
  uint32_t pool_tokens = 0;
  uint64_t cache_host_bytes = 0;  // host memory for prefixes that left the GPU's; 0: they are forgotten
  // GPU memory for the experts of a mixture: beyond it they stay in the file and come when they are chosen. Natively.
  // 0: all experts, or as many as the device has memory for.
  uint64_t expert_bytes = 0;
  // Embeddings of each layer (Gemma 3n and 4) stay in the file, and the rows of a step's tokens come with it. Natively.
  // false: they do so only if the device has no memory for them.
  bool layer_table_on_host = false;
  // Pictures in prompts: the model's vision tower is loaded too, if it has one that this build knows.
  bool images = true;
  std::string
      mmproj;  // GGUF: path of the tower's file; "": the one beside the model, if there is a single one
  // Pan and scan (Gemma 3): a picture with one edge much longer is read as a whole and in crops along that edge.
  // Each crop costs as many tokens as the whole. Error: pictures of the model are not cut so.
  bool pan_and_scan = false;
  std::string pooling;  // "mean", "cls", "last": the model gives embeddings so; "": as its files say
  // All answers have the adapters without a name, added up. If an adapter has a name, or if adapter_slots is set, the
  // model has room for adapters that come later (Model::load_adapter).
  std::vector<AdapterFile> adapters;
  uint32_t adapter_slots =
      0;  // adapters in GPU memory at a time; 0: as many as `adapters` needs, 8 with named ones
  uint32_t adapter_rank = 0;  // the most of one answer's adapters together; 0: as `adapters` need, or 16
  std::map<std::string, std::string> kernels;  // operation -> variant that must be used
  std::vector<std::string> rules;  // "NAME=off": rules of lowering that are not used (doppler graph)
  uint32_t ring = 0;               // answers of the device that may be outstanding: 2 to 64; 0: 4
  bool tuned = true;               // use what `doppler tune` stored in cache_dir for this device
  std::string cache_dir;           // compiled kernels, which shards were verified; "": none
  bool verify = true;         // compare an RDRR model's bytes with its hashes (once, if there is a cache_dir)
  std::string chat_template;  // Jinja text that replaces the model's own
  ProgressCallback progress;
};

struct SamplingOptions {
  float temperature = 0.8f;     // 0: greedy
  uint32_t top_k = 40;          // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.0f;           // 0: off
  float repeat_penalty = 1.0f;  // 1: off
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<std::pair<int32_t, float>> logit_bias;  // token, added to its logit; at most 1024
  uint64_t seed = 0;
  uint32_t min_tokens = 0;       // generated before an end token may be
  float top_n_sigma = 0.0f;      // logits that many standard deviations below the highest leave; 0: off
  float typical_p = 1.0f;        // the most typical tokens that make up this part stay; 1: off
  float xtc_probability = 0.0f;  // of leaving out all but the last of the tokens above xtc_threshold; 0: off
  float xtc_threshold = 0.1f;    // at most 0.5
  float dynatemp_range = 0.0f;   // the temperature follows the entropy, this far up and down; 0: off
  float dynatemp_exponent = 1.0f;
  float mirostat_tau = 0.0f;    // bits of surprise to aim at, in place of the cuts above (mirostat 2); 0: off
  float mirostat_eta = 0.1f;    // how fast it gets there
  float dry_multiplier = 0.0f;  // weakens tokens that would repeat a run of earlier ones; 0: off
  float dry_base = 1.75f;       // by multiplier * base^(length of the run - allowed length)
  uint32_t dry_allowed_length = 2;
  uint32_t dry_range = 0;  // tokens back, at most 1024; 0: that many
  // A token with such a text ends a run.
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
};

inline constexpr uint32_t kMaxTopLogprobs = 20;

enum class WhenFull : uint8_t {
  kStop,   // generation ends when the context is full
  kSlide,  // the older half of the context is dropped and the rest evaluated again
};

enum class GrammarKind : uint8_t {
  kNone,
  kJsonSchema,
  kRegex,
  kGrammar,  // Lark, or GBNF, whose rules have "::="
};

// The form that an answer must have, from its first token to its end token. A schema's keywords that cannot be honoured
// are errors. Without a library of grammars (docs/howto/grammars.md) every grammar is an error.
struct Grammar {
  GrammarKind kind = GrammarKind::kNone;
  std::string text;
  std::string source;  // what errors name it by, such as a flag; may be empty
  bool json_blanks =
      false;  // of a schema: up to 20 blanks may stand between the tokens of JSON, unless its x-guidance says
};

// An adapter of the model, by the name that it was loaded with.
struct AdapterUse {
  std::string name;
  float scale = 1;  // times its own scale
};
// An adapter as Model::adapters() lists it.
struct AdapterInfo {
  std::string name, path;
  uint32_t rank = 0;
  float scale = 1;  // of AdapterFile
};

struct GenerateOptions {
  SamplingOptions sampling;
  // Adapters of this answer, which are added up. An empty list means no adapter. Without a list the answer has the
  // adapters without a name.
  std::optional<std::vector<AdapterUse>> adapters = {};
  uint32_t max_tokens = 0;        // 0: until the model stops or the context is full
  std::vector<std::string> stop;  // these end the generation and are not part of the text
  bool ignore_eos = false;
  WhenFull when_full = WhenFull::kStop;
  Grammar grammar;            // not with min_tokens
  bool logprobs = false;      // of each generated token
  uint32_t top_logprobs = 0;  // with logprobs: of so many best tokens too, at most kMaxTopLogprobs
  std::string draft;          // LoadOptions::draft of this generation; "": as the model was loaded
  uint32_t draft_rows = 0;    // tokens that a step checks, 2 to 8, even if that is slower; 0: as many as pay
  std::string prediction;     // a text that the answer may repeat, for the draft "lookup"
  // The next two are for models with one sequence. The scheduler of several makes its own batches.
  uint32_t batch = 0;              // decode steps of one submit: 1 to 256; 0: what tuning found best, or 16
  uint32_t readback_interval = 1;  // submits whose tokens come back together; batch times this is at most 256
  // The device stops at an end token by itself; false: only the host looks for it.
  bool stop_on_device = true;
  bool add_special = true;  // put the model's begin-of-text token before a text prompt
};

// Finds errors that a generation would have with every model, before a model is loaded. Errors: a number out of its
// range, more tokens before an end token than the answer may have, min_tokens beside a grammar.
Result<void> check_options(const GenerateOptions& options);

enum class StopReason : uint8_t { kEndOfText, kStopString, kTokenLimit, kContextFull, kCancelled };
const char* stop_reason_name(StopReason reason);  // "end-of-text", "stop-string", ...

struct Timings {
  uint32_t prompt_tokens = 0;     // of the prompt
  uint32_t evaluated_tokens = 0;  // prompt tokens that were not found in the cache
  uint32_t cached_tokens = 0;     // prompt tokens that were found there
  uint32_t generated_tokens = 0;
  uint32_t forced_tokens = 0;  // generated tokens that took no step: a grammar left no other choice
  uint32_t drafted_tokens = 0, accepted_tokens = 0;  // guesses (LoadOptions::draft), and how many were right
  std::string_view drafter;                          // the drafter: "lookup", "next", "model"; "": none
  uint32_t preemptions =
      0;  // how often another request took its place or memory, so that it was evaluated again
  double queued_seconds = 0;  // of several sequences: from the call to a place among those that run
  double ttft_seconds = 0;    // from the call to the first token
  uint32_t first_tokens = 0;  // of the generated ones: those that came together with the first
  double decode_seconds = 0;  // from the first tokens to the last
  double prefill_rate() const { return ttft_seconds > 0 ? evaluated_tokens / ttft_seconds : 0; }
  // The rate of the tokens after the first ones. If all came together, it is over all the time.
  double decode_rate() const {
    if (decode_seconds > 0) return (generated_tokens - first_tokens) / decode_seconds;
    const double all = ttft_seconds - queued_seconds;
    return first_tokens > 1 && all > 0 ? first_tokens / all : 0;
  }
  // generated_tokens - 1 intervals at that rate.
  double interval_seconds() const {
    const double rate = decode_rate();
    return rate > 0 ? (generated_tokens - 1) / rate : 0;
  }
};

// Natural logarithms of the probabilities that the model gave, at temperature 1 and before all samplers.
struct TokenLogprobs {
  float logprob = 0;                           // of the chosen token
  std::vector<std::pair<int32_t, float>> top;  // the best tokens, the best first
};

struct Generation {
  std::string text;
  std::vector<int32_t> tokens;          // generated ids, the end token included
  std::vector<TokenLogprobs> logprobs;  // one for each token, if requested
  StopReason stop = StopReason::kTokenLimit;
  Timings timings;
};

// A picture, or a text if the picture is null.
struct ContentPart {
  std::string text;
  std::shared_ptr<const Image> image;
};

struct Message {
  std::string role;  // "system", "developer", "user", "assistant", "tool"; any other is refused
  std::string content;
  std::vector<ContentPart> parts = {};  // in place of `content`, of a message with pictures
};

// The load of a model. Its weights stream while its kernels compile, so that the times overlap.
struct LoadReport {
  double seconds = 0;            // of everything
  double weights_seconds = 0;    // until the last byte of the weights was handed to the device
  double copy_seconds = 0;       // part of weights_seconds: reading the file into memory that the device sees
  double pipelines_seconds = 0;  // until the last kernel was compiled
  // Bytes of the file: those laid out by the GPU for its kernels, unchanged ones, and those laid out by the host.
  uint64_t repacked_bytes = 0, copied_bytes = 0, rearranged_bytes = 0;
  std::string uploads;     // "ring" of staging buffers, "queue", or "host" in a browser
  uint64_t pipelines = 0;  // made
  // The cache of compiled kernels: entries found, and entries that had to be compiled and were stored.
  uint64_t blobs_found = 0, blobs_stored = 0;
};

// The layers of a model that one of several devices has: [first_layer, first_layer + n_layers).
struct ModelPart {
  std::string device;
  uint32_t first_layer = 0, n_layers = 0;
  uint64_t weight_bytes = 0, cache_bytes = 0, scratch_bytes = 0;
};

struct ModelInfo {
  std::string name, architecture, adapter, provider;
  bool synthetic = false;  // random weights (`doppler synth`)
  // For models that give vectors of texts; 0: the model writes text, or gives scores.
  uint32_t embedding_dim = 0;
  bool gives_scores = false;  // of a text for a query (Model::rerank)
  std::string pooling;        // "mean", "cls" or "last"; "none": the model writes text
  uint32_t vocab_size = 0, ctx_len = 0, trained_ctx_len = 0, n_layers = 0;
  uint64_t weight_bytes = 0, cache_bytes = 0, scratch_bytes = 0;  // on the device
  // If the layers lie on several devices: each one's, and the bytes above are those of all. Empty: each has the model.
  std::vector<ModelPart> parts = {};
  LoadReport load;
  bool has_tokenizer = false, has_chat_template = false;
  bool reads_images = false;  // prompts may have pictures
};

// The paging of experts that come to the GPU when they are chosen, since the model was loaded. A use is of one expert
// of a layer in one step or piece of a prompt.
struct ExpertPaging {
  uint32_t slots = 0, experts = 0;              // of a layer; 0: all experts lie on the GPU
  uint64_t uses = 0, misses = 0;                // misses: uses that waited for an upload
  uint64_t bytes = 0;                           // uploaded
  double upload_seconds = 0, wait_seconds = 0;  // of uploads, and until routes came to the host
  double hit_rate() const {
    return uses == 0 ? 0 : 1 - static_cast<double>(misses) / static_cast<double>(uses);
  }
};

// Counted by the device since the model was loaded. Objects must stay 0. Plans that a generation is the first to need
// (log-probabilities, a grammar, further samplers) do not count.
struct Counters {
  uint64_t submits = 0, dispatches = 0, readback_bytes = 0, objects_created = 0;
  ExpertPaging experts = {};
};

// Return false to stop; the callback is not called again.
using TextCallback = std::function<bool(std::string_view text)>;

struct EmbedOptions {
  // Keeps only so many first numbers of the embedding, for models that were trained for it; 0: all. Error: other
  // models, more than all.
  uint32_t dimensions = 0;
  bool truncate = false;  // a text that is longer than the context is cut at its end; without it is an error
  bool add_special = true;  // put the model's own tokens around a text
};

struct Embedding {
  std::vector<float> values;  // of length 1, if the model's files say so
  uint32_t tokens = 0;        // that were evaluated
};

class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Continues the session's text with `prompt` and generates. Text arrives in whole characters.
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options,
                              const TextCallback& on_text = {});
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                              const TextCallback& on_text = {});
  // The whole conversation, through the model's chat template; what is already in the cache is not evaluated
  // again.
  Result<Generation> chat(std::span<const Message> messages, const GenerateOptions& options,
                          const TextCallback& on_text = {});

  // Pull instead of callback: start(), then next() until it gives nothing, then finish().
  Result<void> start(std::string_view prompt, const GenerateOptions& options);
  Result<std::optional<std::string>> next();
  Result<Generation> finish();

  // A session of its own with the same text; what is evaluated already is shared.
  Session fork() const;
  void cancel();  // from any thread; the generation under way ends with StopReason::kCancelled
  void reset();   // forgets the text
  std::span<const int32_t> tokens() const;
  // The conversation of the last chat() with its answer, also after restore(); empty if the text is none.
  std::span<const Message> messages() const;
  // Tokens, conversation and cache; restoring needs the same model, cache format and a context at least as
  // long.
  Result<void> save(const std::string& path);
  Result<void> restore(const std::string& path);

  struct Impl;

 private:
  friend class Model;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Scheduler;  // scheduler.h

class Model {
 public:
  // A GGUF file or a Hugging Face folder.
  static Result<Model> load(const std::string& path, const LoadOptions& options);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelInfo& info() const;
  Counters counters() const;
  Result<std::vector<int32_t>> tokenize(std::string_view text, bool add_special, bool parse_special) const;
  Result<std::string> detokenize(std::span<const int32_t> ids) const;
  Result<std::string> apply_chat_template(std::span<const Message> messages,
                                          bool add_generation_prompt) const;
  Session new_session();
  // The vector of a text, of a model that gives embeddings (ModelInfo::embedding_dim); pooled as the model's files say.
  // Error: a model that writes text.
  Result<Embedding> embed(std::string_view text, const EmbedOptions& options);
  Result<Embedding> embed(std::span<const int32_t> tokens, const EmbedOptions& options);
  // Scores how well a text answers a query, 0 to 1. `tokens`, unless null, gets the number of evaluated tokens. Error:
  // the model does not score pairs.
  Result<float> rerank(std::string_view query, std::string_view text, uint32_t* tokens = nullptr);
  // Answers may ask for this adapter by `name` from now on. It replaces an adapter of the same name. Any thread may
  // call this. Errors: the file is no adapter, or none of this model; the model was loaded without room for it
  // (LoadOptions::adapter_slots).
  Result<void> load_adapter(const std::string& name, const std::string& path);
  // Answers under way keep the adapter. Error: no adapter has this name.
  Result<void> unload_adapter(const std::string& name);
  std::vector<AdapterInfo> adapters() const;  // in the order of their names
  // All calls give the same scheduler, whose turns a thread runs from now on. Error: the model writes no text.
  Result<Scheduler> scheduler();

  struct Impl;  // not of the public interface

 private:
  explicit Model(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace doppler
