/* Doppler's C interface, for C and for languages that call C: the C++ API of doppler.h and scheduler.h, name for name.
 * C99; link with libdoppler.so (pkg-config doppler).
 *
 *   doppler_model* model = NULL;
 *   doppler_error* error = doppler_model_load("model.gguf", NULL, &model);
 *   if (error) { puts(doppler_error_message(error)); doppler_error_free(error); return 1; }
 *
 * - A function that can fail returns NULL, or an error that the caller frees. Its results leave through its last
 *   arguments, which are NULL after an error. A pointer that must not be NULL and is gives an error that names it.
 * - Structs open with their size, which the caller sets, so that later versions can add members: options with their
 *   _init function, what the library fills as `doppler_timings timings = {.size = sizeof(timings)}`. Messages and
 *   biases, which come in arrays, never change.
 * - Text is UTF-8 and ends with a NUL; a length does not count the NUL.
 * - What a _free function frees may be NULL. Handles may be freed in any order: a session keeps its model alive.
 * - Threads: doppler.h says which calls may come from which. Callbacks come from the thread of the call they belong to.
 * - No C++ exception leaves the library; callbacks must not let one in. */
#ifndef DOPPLER_DOPPLER_C_H
#define DOPPLER_DOPPLER_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DOPPLER_API __attribute__((visibility("default")))
#define DOPPLER_CAN_FAIL __attribute__((visibility("default"), warn_unused_result))
#else
#define DOPPLER_API
#define DOPPLER_CAN_FAIL
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct doppler_error doppler_error;
typedef struct doppler_model doppler_model;
typedef struct doppler_session doppler_session;
typedef struct doppler_scheduler doppler_scheduler;
typedef struct doppler_stream doppler_stream;
typedef struct doppler_generation doppler_generation;

/* ---- Library */

#define DOPPLER_C_VERSION 1                    /* grows with each addition to this header */
DOPPLER_API uint32_t doppler_c_version(void);  /* the library's DOPPLER_C_VERSION */
DOPPLER_API const char* doppler_version(void); /* "0.1.0" */
/* Frees the memory that a function below allocated: lists of tokens and texts. */
DOPPLER_API void doppler_free(void* memory);

/* ---- Errors */

typedef enum doppler_error_kind {
  DOPPLER_OK = 0,            /* the kind of the error NULL */
  DOPPLER_INVALID_INPUT = 1, /* a file, an argument or a request is wrong */
  DOPPLER_UNSUPPORTED = 2,   /* valid, but this build or device cannot do it */
  DOPPLER_OUT_OF_MEMORY = 3, /* host or device memory */
  DOPPLER_DEVICE = 4,        /* the GPU, its driver or the WebGPU provider failed */
  DOPPLER_IO = 5,            /* reading or writing failed */
  DOPPLER_CANCELLED = 6,     /* a callback asked to stop */
  DOPPLER_INTERNAL = 7       /* a fault of Doppler's */
} doppler_error_kind;

DOPPLER_API doppler_error_kind doppler_error_get_kind(const doppler_error* error);
/* A sentence that says what was given and what is allowed, and lines that begin with "While". Lives as long as the
 * error; "" for NULL. */
DOPPLER_API const char* doppler_error_message(const doppler_error* error);
DOPPLER_API void doppler_error_free(doppler_error* error);

/* ---- Models */

/* stage: "weights" (done and total in bytes) or "kernels" (pipelines). Return false to stop loading. */
typedef bool (*doppler_on_progress)(void* data, const char* stage, uint64_t done, uint64_t total);

/* A low-rank adapter (LoRA): a PEFT folder or a GGUF file. */
typedef struct doppler_adapter {
  const char* path;
  const char* name; /* NULL or "": all answers have it; else those that ask for it by this name */
  float scale;      /* besides its own: 1 is as it was trained */
} doppler_adapter;

/* An adapter of the model, by the name that it was loaded with. */
typedef struct doppler_adapter_use {
  const char* name;
  float scale; /* besides its own */
} doppler_adapter_use;

/* The members of doppler::LoadOptions; texts that are NULL leave the default. */
typedef struct doppler_load_options {
  size_t size;
  const char* webgpu;        /* provider: "", "dawn", "wgpu" or the path of a library */
  const char* device;        /* "", an index of `doppler devices`, part of a name, or several: "0,1", "all" */
  const char* lane;          /* "fast" (the default), "exact" or another of doppler::LoadOptions::lane */
  const char* kv;            /* cache: "f16" (the default), "f32" or "q8_0" */
  const char* cache_dir;     /* compiled kernels, which shards were verified; "": none */
  const char* chat_template; /* Jinja text that replaces the model's own */
  const char* const* kernels; /* "OPERATION=VARIANT": variants that must be used */
  size_t kernel_count;
  const char* const* rules; /* "NAME=off": rules of lowering that are not used */
  size_t rule_count;
  uint32_t ctx_len;          /* tokens; 0: what the model was trained for, at most 4096 */
  uint32_t chunk;            /* tokens of a prefill chunk; 0: 512 */
  uint32_t sequences;        /* that may be decoded together, 1 to 64 */
  uint32_t pool_tokens;      /* of all sequences' caches together; 0: ctx_len for each, or what fits */
  uint64_t cache_host_bytes; /* host memory for prefixes that left the GPU's; 0: they are forgotten */
  uint32_t ring;             /* answers of the device that may be outstanding: 2 to 64; 0: 4 */
  bool tuned;                /* use what `doppler tune` stored in cache_dir; true by default */
  bool verify;               /* compare an RDRR model's bytes with its hashes; true by default */
  bool all_samplers;         /* not read: every generation may ask for every sampler */
  bool logprobs;             /* not read: every generation may ask for log-probabilities */
  doppler_on_progress on_progress;
  void* progress_data;   /* the first argument of on_progress */
  uint64_t grammars;     /* not read: every generation may have a grammar */
  uint64_t expert_bytes; /* GPU memory for a mixture's experts; 0: all, or as many as the device holds */
  uint64_t
      layer_table_on_host; /* 1: embeddings of each layer stay in the file; 0: where there is no room alone */
  const char*
      draft; /* who guesses tokens: "auto" (the default), "off", "lookup" (the text), "next" (a layer),
                        "model" (draft_model) */
  const char* draft_model; /* the path of a small model of the same vocabulary, which guesses; NULL: none */
  const doppler_adapter* adapters; /* several without a name are added up */
  size_t adapter_count;
  uint32_t adapter_slots; /* in GPU memory at a time; 0: as many as `adapters` needs, 8 with named ones */
  uint32_t adapter_rank;  /* the most of those that are used together; 0: of `adapters`, or 16 */
  const char* mmproj;     /* GGUF: the path of the vision tower's file; NULL: the one beside the model */
  const char* split_mode; /* of several devices: "auto" (the default), "layer" or "none" */
  uint64_t pan_and_scan;  /* 1: long pictures are read as a whole and in crops (Gemma 3) */
} doppler_load_options;

/* size: sizeof(doppler_load_options). */
DOPPLER_API void doppler_load_options_init(doppler_load_options* options, size_t size);

/* path: a GGUF file or a Hugging Face folder. options: NULL for the defaults. */
DOPPLER_CAN_FAIL doppler_error* doppler_model_load(const char* path, const doppler_load_options* options,
                                                   doppler_model** model);
DOPPLER_API void doppler_model_free(doppler_model* model);

/* Answers may ask for this adapter by `name` from now on. It replaces an adapter of the same name. The model must have
 * room for it (adapter_slots). Answers under way keep an adapter that doppler_model_unload_adapter removes. */
DOPPLER_CAN_FAIL doppler_error* doppler_model_load_adapter(doppler_model* model, const char* name,
                                                           const char* path);
DOPPLER_CAN_FAIL doppler_error* doppler_model_unload_adapter(doppler_model* model, const char* name);

typedef struct doppler_model_info {
  size_t size;
  const char *name, *architecture, *adapter, *provider; /* live as long as the model's handle */
  uint32_t vocab_size, ctx_len, trained_ctx_len, n_layers;
  uint64_t weight_bytes, cache_bytes, scratch_bytes; /* on the device */
  bool synthetic;                                    /* random weights */
  bool has_tokenizer, has_chat_template;
  double load_seconds;
} doppler_model_info;

DOPPLER_CAN_FAIL doppler_error* doppler_model_get_info(const doppler_model* model, doppler_model_info* info);

typedef struct doppler_message {
  const char* role; /* "system", "developer", "user", "assistant", "tool"; any other is refused */
  const char* content;
} doppler_message;

/* Results of these three are freed with doppler_free. The text to tokenize has `length` bytes, of any value. */
DOPPLER_CAN_FAIL doppler_error* doppler_model_tokenize(const doppler_model* model, const char* text,
                                                       size_t length, bool add_special, bool parse_special,
                                                       int32_t** tokens, size_t* count);
DOPPLER_CAN_FAIL doppler_error* doppler_model_detokenize(const doppler_model* model, const int32_t* tokens,
                                                         size_t count, char** text, size_t* length);
DOPPLER_CAN_FAIL doppler_error* doppler_model_apply_chat_template(const doppler_model* model,
                                                                  const doppler_message* messages,
                                                                  size_t count, bool add_generation_prompt,
                                                                  char** text, size_t* length);

/* ---- What a generation shall be, and what it became */

/* The text is whole characters and not empty. Return false to end the generation. */
typedef bool (*doppler_on_text)(void* data, const char* text, size_t length);

typedef struct doppler_logit_bias {
  int32_t token;
  float bias; /* added to the token's logit */
} doppler_logit_bias;

typedef enum doppler_when_full {
  DOPPLER_FULL_STOP = 0, /* generation ends when the context is full */
  DOPPLER_FULL_SLIDE = 1 /* the older half of the context is dropped and the rest evaluated again */
} doppler_when_full;

typedef enum doppler_grammar_kind {
  DOPPLER_GRAMMAR_NONE = 0,
  DOPPLER_GRAMMAR_JSON_SCHEMA = 1,
  DOPPLER_GRAMMAR_REGEX = 2, /* in Rust's syntax */
  DOPPLER_GRAMMAR_TEXT = 3   /* Lark, or GBNF, whose rules have "::=" */
} doppler_grammar_kind;

/* The members of doppler::SamplingOptions and doppler::GenerateOptions. */
typedef struct doppler_generate_options {
  size_t size;
  float temperature;           /* 0: greedy; default 0.8 */
  uint32_t top_k;              /* 0: off; default 40 */
  float top_p;                 /* 1: off; default 0.95 */
  float min_p;                 /* 0: off, the default */
  float repeat_penalty;        /* 1: off, the default */
  float presence_penalty;      /* 0: off, the default */
  float frequency_penalty;     /* 0: off, the default */
  uint32_t max_tokens;         /* 0: until the model stops or the context is full */
  doppler_when_full when_full; /* default DOPPLER_FULL_STOP */
  uint32_t batch;              /* decode steps of one submit: 1 to 256; 0: what tuning found best, or 16 */
  uint32_t readback_interval;  /* submits whose tokens come back together; default 1 */
  bool ignore_eos;
  bool stop_on_device;   /* the device stops at an end token by itself; true by default */
  bool add_special;      /* put the model's begin-of-text token before a text prompt; true by default */
  bool logprobs;         /* of each generated token */
  uint32_t top_logprobs; /* with logprobs: of so many best tokens too, at most 20 */
  uint64_t seed;
  const doppler_logit_bias* logit_bias; /* at most 1024 */
  size_t logit_bias_count;
  const char* const* stop; /* texts that end the generation and are not part of it */
  size_t stop_count;
  uint32_t min_tokens;             /* generated before an end token may be; default 0 */
  float top_n_sigma;               /* 0: off, the default */
  float typical_p;                 /* 1: off, the default */
  float xtc_probability;           /* 0: off, the default */
  float xtc_threshold;             /* at most 0.5; default 0.1 */
  float dynatemp_range;            /* 0: off, the default */
  float dynatemp_exponent;         /* default 1 */
  float mirostat_tau;              /* 0: off, the default */
  float mirostat_eta;              /* default 0.1 */
  float dry_multiplier;            /* 0: off, the default */
  float dry_base;                  /* default 1.75 */
  uint32_t dry_allowed_length;     /* default 2 */
  uint32_t dry_range;              /* tokens back, at most 1024; 0: that many, the default */
  const char* const* dry_breakers; /* NULL: the default, newline, colon, quote and asterisk */
  size_t dry_breaker_count;
  doppler_grammar_kind grammar_kind; /* what the answer must be; default none */
  const char* grammar;               /* its text */
  const char* draft;                 /* as of doppler_load_options; NULL: as the model was loaded */
  const char* prediction;            /* a text that the answer may repeat, for the draft "lookup" */
  uint64_t
      draft_rows; /* tokens that a step checks, 2 to 8, whether or not that is faster; 0: as many as pay */
  const doppler_adapter_use*
      adapters;           /* of this answer, added up; NULL: those that the model was loaded with */
  uint64_t adapter_count; /* 0 with adapters that are not NULL: none */
} doppler_generate_options;

/* size: sizeof(doppler_generate_options). */
DOPPLER_API void doppler_generate_options_init(doppler_generate_options* options, size_t size);

typedef enum doppler_stop_reason {
  DOPPLER_STOP_END_OF_TEXT = 0,
  DOPPLER_STOP_STRING = 1,
  DOPPLER_STOP_TOKEN_LIMIT = 2,
  DOPPLER_STOP_CONTEXT_FULL = 3,
  DOPPLER_STOP_CANCELLED = 4
} doppler_stop_reason;

DOPPLER_API const char* doppler_stop_reason_name(doppler_stop_reason reason); /* "end-of-text", ... */

typedef struct doppler_timings {
  size_t size;
  uint32_t prompt_tokens;    /* of the prompt */
  uint32_t evaluated_tokens; /* prompt tokens that were not found in the cache */
  uint32_t cached_tokens;    /* prompt tokens that were found there */
  uint32_t generated_tokens;
  double queued_seconds;  /* of a scheduler's stream: from the call to a place among those that run */
  double ttft_seconds;    /* from the call to the first token */
  double decode_seconds;  /* of generated_tokens - 1 intervals */
  uint64_t forced_tokens; /* of those generated, appended without a step each: a grammar left no other */
  uint64_t drafted_tokens, accepted_tokens; /* guessed (doppler_load_options.draft); of these, right */
  uint64_t
      preemptions; /* how often its place or memory was given to another, and what it had was evaluated again */
} doppler_timings;

/* Text and tokens live as long as the generation; length and count may be NULL. The generation NULL has the text "" and
 * the tokens NULL, and its stop reason is DOPPLER_STOP_CANCELLED. */
DOPPLER_API const char* doppler_generation_text(const doppler_generation* generation, size_t* length);
DOPPLER_API const int32_t* doppler_generation_tokens(const doppler_generation* generation, size_t* count);
DOPPLER_API doppler_stop_reason doppler_generation_stop_reason(const doppler_generation* generation);
DOPPLER_CAN_FAIL doppler_error* doppler_generation_get_timings(const doppler_generation* generation,
                                                               doppler_timings* timings);
typedef struct doppler_token_logprob {
  int32_t token;
  float logprob; /* natural logarithm of the model's probability, at temperature 1 and before all samplers */
} doppler_token_logprob;

/* The log-probabilities at token `index`: its own, and up to `capacity` of those of the best tokens, the best first;
 * `count` is their number. best may be NULL with capacity 0. Error: the generation did not request them, or has no such
 * token. */
DOPPLER_CAN_FAIL doppler_error* doppler_generation_get_logprobs(const doppler_generation* generation,
                                                                size_t index, doppler_token_logprob* own,
                                                                doppler_token_logprob* best, size_t capacity,
                                                                size_t* count);
DOPPLER_API void doppler_generation_free(doppler_generation* generation);

/* ---- Sessions: one text that grows. options: NULL for the defaults; on_text: NULL for none. */

DOPPLER_CAN_FAIL doppler_error* doppler_model_new_session(doppler_model* model, doppler_session** session);
DOPPLER_API void doppler_session_free(doppler_session* session);

/* Continue the session's text with the prompt and generate. */
DOPPLER_CAN_FAIL doppler_error* doppler_session_generate(doppler_session* session, const char* prompt,
                                                         const doppler_generate_options* options,
                                                         doppler_on_text on_text, void* data,
                                                         doppler_generation** generation);
DOPPLER_CAN_FAIL doppler_error* doppler_session_generate_tokens(doppler_session* session,
                                                                const int32_t* prompt, size_t count,
                                                                const doppler_generate_options* options,
                                                                doppler_on_text on_text, void* data,
                                                                doppler_generation** generation);
/* The whole conversation, through the model's chat template; what is in the cache is not evaluated again. */
DOPPLER_CAN_FAIL doppler_error* doppler_session_chat(doppler_session* session,
                                                     const doppler_message* messages, size_t count,
                                                     const doppler_generate_options* options,
                                                     doppler_on_text on_text, void* data,
                                                     doppler_generation** generation);

/* Pull instead of callback: start, then next until its text is NULL, then finish. The text may be empty and lives until
 * the session's next call. */
DOPPLER_CAN_FAIL doppler_error* doppler_session_start(doppler_session* session, const char* prompt,
                                                      const doppler_generate_options* options);
DOPPLER_CAN_FAIL doppler_error* doppler_session_next(doppler_session* session, const char** text,
                                                     size_t* length);
DOPPLER_CAN_FAIL doppler_error* doppler_session_finish(doppler_session* session,
                                                       doppler_generation** generation);

DOPPLER_API void doppler_session_cancel(doppler_session* session); /* from any thread */
DOPPLER_API void doppler_session_reset(doppler_session* session);  /* forgets the text */
/* The session's text; lives until its next call. */
DOPPLER_API const int32_t* doppler_session_tokens(const doppler_session* session, size_t* count);
/* A session of its own with the same text; what is evaluated already is shared. */
DOPPLER_CAN_FAIL doppler_error* doppler_session_fork(const doppler_session* session, doppler_session** fork);
DOPPLER_CAN_FAIL doppler_error* doppler_session_save(doppler_session* session, const char* path);
DOPPLER_CAN_FAIL doppler_error* doppler_session_restore(doppler_session* session, const char* path);

/* ---- Schedulers: many generations at once. The model was loaded for 2 sequences or more. */

DOPPLER_CAN_FAIL doppler_error* doppler_model_get_scheduler(doppler_model* model,
                                                            doppler_scheduler** scheduler);
DOPPLER_API void doppler_scheduler_free(doppler_scheduler* scheduler);

/* The prompt is one of text, tokens and messages; the others are NULL. */
typedef struct doppler_request {
  size_t size;
  const char* text;
  const int32_t* tokens;
  size_t token_count;
  const doppler_message* messages; /* a conversation for the model's chat template */
  size_t message_count;
  const doppler_generate_options* options; /* NULL: the defaults */
  uint64_t client;                         /* who asks: clients of one priority get equal shares */
  int32_t priority;        /* 0 to 7; higher ones begin earlier, in the slot of a lower one if need be */
  double deadline_seconds; /* to begin within; 0: none */
} doppler_request;

DOPPLER_CAN_FAIL doppler_error* doppler_scheduler_submit(doppler_scheduler* scheduler,
                                                         const doppler_request* request,
                                                         doppler_stream** stream);
/* A stream that goes on from all that was read of `parent`. */
DOPPLER_CAN_FAIL doppler_error* doppler_scheduler_fork(doppler_scheduler* scheduler,
                                                       const doppler_stream* parent,
                                                       const doppler_generate_options* options,
                                                       doppler_stream** stream);

typedef struct doppler_scheduler_load {
  size_t size;
  uint32_t running, waiting;      /* streams */
  uint32_t free_blocks, blocks;   /* of the cache */
  uint32_t block_len;             /* tokens of a block */
  uint64_t host_cache_bytes;      /* of prefixes that left the GPU's memory */
  uint64_t objects_created;       /* on the GPU since the model was loaded: stays 0 */
  uint32_t devices, lost_devices; /* that the model was loaded on; that failed since */
} doppler_scheduler_load;

DOPPLER_CAN_FAIL doppler_error* doppler_scheduler_get_load(const doppler_scheduler* scheduler,
                                                           doppler_scheduler_load* load);

/* Waits for more text, which may be empty; NULL: the generation has ended. Lives until the stream's next call. */
DOPPLER_CAN_FAIL doppler_error* doppler_stream_next(doppler_stream* stream, const char** text,
                                                    size_t* length);
/* The whole answer; waits for its end. */
DOPPLER_CAN_FAIL doppler_error* doppler_stream_finish(doppler_stream* stream,
                                                      doppler_generation** generation);
DOPPLER_API void doppler_stream_cancel(doppler_stream* stream); /* from any thread */
DOPPLER_API void doppler_stream_free(doppler_stream* stream);   /* cancels what has not ended */

#ifdef __cplusplus
}
#endif

#endif /* DOPPLER_DOPPLER_C_H */
