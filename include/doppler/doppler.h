// Doppler's public C++ API: load a model, open a session, generate.
//
//   auto model = doppler::Model::load("model.gguf", {});
//   if (!model) return report(model.error().message());
//   auto session = model->new_session();
//   auto answer = session.generate("The fox and the crow", {}, [](std::string_view text) { print(text);
//   return true; });
//
// Calls block until they are done. A Model and its sessions belong to one thread at a time, unless it was loaded for
// several sequences (LoadOptions::sequences) or has a scheduler: then each session may have a thread of its own. cancel() may come from any
// thread. Many requests at once, with priorities and streams: scheduler.h. Link with find_package(doppler) and the target doppler::doppler.
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

#include "doppler/result.h"

namespace doppler {

// stage: "weights" (done and total in bytes) or "kernels" (pipelines). Return false to stop: load() ends with
// ErrorKind::kCancelled, at once among weights, among kernels when all are compiled.
using ProgressCallback = std::function<bool(std::string_view stage, uint64_t done, uint64_t total)>;

struct LoadOptions {
  std::string webgpu;         // provider: "", "dawn", "wgpu" or the path of a library
  std::string device;         // "", an index of `doppler devices` or part of a name
  std::string lane = "fast";  // "exact", "fast", "portable", "subgroups", "dp4a", "matrix", "persistent"
  std::string draft =
      "auto";  // the model's next-token layer guesses tokens: "auto" (where that is faster), "on", "off"
  std::string kv = "f16";  // cache: "f16", "f32" or "q8_0"; for "f16" the exact lane takes f32
  uint32_t ctx_len = 0;    // tokens; 0: what the model was trained for, at most 4096
  uint32_t chunk = 0;      // tokens of a prefill chunk; 0: 512
  // Sequences that may be decoded together, 1 to 64. 1: kernels for one sequence, the fastest for it alone; sessions and requests
  // then take turns, and switching between them costs evaluating what differs again. More: each has its own sequence.
  uint32_t sequences = 1;
  uint32_t pool_tokens =
      0;  // of all sequences' caches together; 0: ctx_len for each, or what fits the device
  uint64_t cache_host_bytes = 0;  // host memory for prefixes that left the GPU's; 0: they are forgotten
  // GPU memory for the experts of a mixture: beyond it they stay in the file and come when they are chosen. Natively, of one
  // sequence. 0: all of them, or as many as the device has memory for.
  uint64_t expert_bytes = 0;
  // Embeddings of each layer (Gemma 3n and 4) stay in the file, and the rows of a step's tokens come with it. Natively.
  // false: they do where the device has no memory for them.
  bool layer_table_on_host = false;
  // Pictures in prompts: the model's vision tower is loaded too, if it has one that this build knows. Of one sequence.
  bool images = true;
  std::string pooling;  // "mean", "cls", "last": the model gives embeddings so; "": as its files say
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
  std::vector<std::string> dry_breakers = {"\n", ":", "\"",
                                           "*"};  // no run reaches over a token with one of these
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

// What an answer must be, from its first token to its end token. A schema's keywords that cannot be honoured are errors, and
// so is a grammar where there is no library of grammars (docs/howto/grammars.md).
struct Grammar {
  GrammarKind kind = GrammarKind::kNone;
  std::string text;
  std::string source;  // what errors name it by, such as a flag; may be empty
};

struct GenerateOptions {
  SamplingOptions sampling;
  uint32_t max_tokens = 0;        // 0: until the model stops or the context is full
  std::vector<std::string> stop;  // texts that end the generation and are not part of it
  bool ignore_eos = false;
  WhenFull when_full = WhenFull::kStop;
  Grammar grammar;            // not with min_tokens
  bool logprobs = false;      // of each generated token
  uint32_t top_logprobs = 0;  // with logprobs: of so many best tokens too, at most kMaxTopLogprobs
  // Of models with one sequence; several are batched by their scheduler.
  uint32_t batch = 0;              // decode steps of one submit: 1 to 256; 0: what tuning found best, or 16
  uint32_t readback_interval = 1;  // submits whose tokens come back together; batch times this is at most 256
  bool stop_on_device =
      true;                 // the device stops at an end token by itself; or else only the host looks for it
  bool add_special = true;  // put the model's begin-of-text token before a text prompt
};

// What a generation would refuse whatever its model, to ask before one is loaded. Errors: a number out of its range, more tokens
// before an end token than the answer may have, min_tokens beside a grammar.
Result<void> check_options(const GenerateOptions& options);

enum class StopReason : uint8_t { kEndOfText, kStopString, kTokenLimit, kContextFull, kCancelled };
const char* stop_reason_name(StopReason reason);  // "end-of-text", "stop-string", ...

struct Timings {
  uint32_t prompt_tokens = 0;     // of the prompt
  uint32_t evaluated_tokens = 0;  // of these, not found in the cache
  uint32_t cached_tokens = 0;     // of these, found there
  uint32_t generated_tokens = 0;
  uint32_t forced_tokens = 0;  // of these, appended without a step of their own: a grammar left no other
  uint32_t drafted_tokens = 0,
           accepted_tokens = 0;  // guessed by the model's next-token layer; of these, right
  uint32_t preemptions =
      0;  // how often its place or memory was given to another, and what it had was evaluated again
  double queued_seconds = 0;  // of several sequences: from the call to a place among those that run
  double ttft_seconds = 0;    // from the call to the first token
  double decode_seconds = 0;  // from the first token to the last: generated_tokens - 1 intervals
  double prefill_rate() const { return ttft_seconds > 0 ? evaluated_tokens / ttft_seconds : 0; }
  double decode_rate() const { return decode_seconds > 0 ? (generated_tokens - 1) / decode_seconds : 0; }
};

// Natural logarithms of the probabilities that the model gave, at temperature 1 and before all samplers.
struct TokenLogprobs {
  float logprob = 0;                           // of the chosen token
  std::vector<std::pair<int32_t, float>> top;  // the best tokens, the best first
};

struct Generation {
  std::string text;
  std::vector<int32_t> tokens;          // generated ids, the end token included
  std::vector<TokenLogprobs> logprobs;  // of each of them, where they were asked for
  StopReason stop = StopReason::kTokenLimit;
  Timings timings;
};

// A picture in memory: 8-bit RGB, row by row.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;

  // From a file: PNG, JPEG, WebP (still), GIF (its first frame) or BMP. It is upright, and what is transparent lies on white.
  // Errors: another format; more than 64 MiB or 67 million pixels.
  static Result<std::shared_ptr<const Image>> decode(std::span<const uint8_t> file);
  static Result<std::shared_ptr<const Image>> load(const std::string& path);
};

// A picture, or a text where there is none.
struct ContentPart {
  std::string text;
  std::shared_ptr<const Image> image;
};

struct Message {
  std::string role;  // "system", "developer", "user", "assistant", "tool"; any other is refused
  std::string content;
  std::vector<ContentPart> parts = {};  // in place of `content`, of a message with pictures
};

// How a model was loaded. Its weights stream while its kernels compile, so that the times overlap.
struct LoadReport {
  double seconds = 0;            // of everything
  double weights_seconds = 0;    // until the last byte of the weights was handed to the device
  double copy_seconds = 0;       // of them, reading the file into memory that the device sees
  double pipelines_seconds = 0;  // until the last kernel was compiled
  // Bytes of the file that the GPU laid out for its kernels, that could stay as they were, and that the host laid out.
  uint64_t repacked_bytes = 0, copied_bytes = 0, rearranged_bytes = 0;
  std::string uploads;     // "ring" of staging buffers, "queue", or "host" in a browser
  uint64_t pipelines = 0;  // made
  // Of the cache of compiled kernels: entries found, and entries that had to be compiled and were stored.
  uint64_t blobs_found = 0, blobs_stored = 0;
};

struct ModelInfo {
  std::string name, architecture, adapter, provider;
  bool synthetic = false;  // random weights (`doppler synth`)
  uint32_t embedding_dim =
      0;  // of models that give vectors of texts; 0: the model writes text, or gives scores
  bool gives_scores = false;  // of a text for a query (Model::rerank)
  std::string pooling;        // "mean", "cls" or "last"; "none": the model writes text
  uint32_t vocab_size = 0, ctx_len = 0, trained_ctx_len = 0, n_layers = 0;
  uint64_t weight_bytes = 0, cache_bytes = 0, scratch_bytes = 0;  // on the device
  LoadReport load;
  bool has_tokenizer = false, has_chat_template = false;
  bool reads_images = false;  // prompts may have pictures
};

// Experts that come to the GPU when they are chosen, since the model was loaded. A use is of one expert of a layer in one
// step or piece of a prompt.
struct ExpertPaging {
  uint32_t slots = 0, experts = 0;              // of a layer; 0: all experts lie on the GPU
  uint64_t uses = 0, misses = 0;                // misses: uses that waited for an upload
  uint64_t bytes = 0;                           // uploaded
  double upload_seconds = 0, wait_seconds = 0;  // of uploads, and until routes came to the host
  double hit_rate() const {
    return uses == 0 ? 0 : 1 - static_cast<double>(misses) / static_cast<double>(uses);
  }
};

// Counted by the device since the model was loaded. Objects must stay 0; those of plans that a generation is the first to need
// (log-probabilities, a grammar, further samplers) are not among them.
struct Counters {
  uint64_t submits = 0, dispatches = 0, readback_bytes = 0, objects_created = 0;
  ExpertPaging experts = {};
};

// Return false to stop; the callback is not called again.
using TextCallback = std::function<bool(std::string_view text)>;

struct EmbedOptions {
  // Of the embedding: the first so many, for models that were trained for it; 0: all. Error: other models, more than all.
  uint32_t dimensions = 0;
  bool truncate = false;  // a text that is longer than the context is cut at its end; without it is an error
  bool add_special = true;  // put the model's own tokens around a text
};

struct Embedding {
  std::vector<float> values;  // of length 1, where the model's files say so
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
  // How well a text answers a query, 0 to 1, of a model that scores pairs. Error: another model.
  Result<float> rerank(std::string_view query, std::string_view text);
  // All calls give the same scheduler, whose turns a thread runs from now on. Error: the model writes no text.
  Result<Scheduler> scheduler();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Model(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace doppler
