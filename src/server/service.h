// The part that the endpoints share, with the common forms of answers. An endpoint is a function and a row in
// routes.cpp. It runs on a thread that reads bodies one after the other, and gives long work to a model's thread. Read
// next: routes.cpp, generation.h, server.cpp.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "openai/answer_writer.h"
#include "server/adapters.h"
#include "server/apis/responses_store.h"
#include "server/exchange.h"
#include "server/files/batches.h"
#include "server/files/file_store.h"
#include "server/metrics.h"
#include "server/models.h"

namespace doppler::server {

struct ServiceOptions {
  GenerateOptions defaults;          // if a body does not say
  bool has_seed = false;             // the defaults have a seed; false: each request has a random one
  uint32_t places = 1;               // sequences of a model that are decoded together
  uint32_t most_waiting = 256;       // requests of a model beyond those; more get 429
  uint32_t most_loaded = 0;          // models at a time; 0: all
  bool adapters_may_change = false;  // clients may load and unload adapters
  bool any_name = false;             // an unknown model's name means the first model
  std::string files_folder;          // where files and batches are kept; empty: until the server ends
  uint64_t files_bytes = 1u << 30;
  std::vector<Metrics::Counter> counters = {};  // of what runs beside the server, for /metrics
};

class Service {
 public:
  Service(ServiceOptions options, std::vector<ModelSource> sources, std::function<size_t()> connections,
          std::unique_ptr<FileStore> files);

  const ServiceOptions& options() const { return options_; }
  Models& models() { return models_; }
  ServedAdapters& adapters() { return adapters_; }
  Metrics& metrics() { return metrics_; }
  ResponsesStore& responses() { return responses_; }
  FileStore& files() { return *files_; }
  Batches& batches() { return batches_; }
  Worker& file_worker() { return file_worker_; }  // writes and reads files
  size_t connections() const { return connections_(); }
  int64_t started() const { return started_; }  // seconds since 1970

  // Logs each name once.
  void note_ignored(const std::vector<std::string>& fields);

  // The model's generations for this request: through the writer, or an error. Any thread but the loop's.
  void generate(std::shared_ptr<Exchange> exchange, Result<openai::ServedRequest> request,
                std::unique_ptr<openai::AnswerWriter> writer);
  // Calls `work` on the thread of the model that is named, once it is loaded; replies where that fails.
  void with_model(std::shared_ptr<Exchange> exchange, const std::string& name,
                  std::function<void(ReadyModel&)> work);
  // Null: it replied that there is no such model, or that too many wait for it.
  std::shared_ptr<ModelHost> admit(Exchange& exchange, const std::string& name);

 private:
  const ServiceOptions options_;
  const std::function<size_t()> connections_;
  const int64_t started_ = std::time(nullptr);
  Metrics metrics_;
  ResponsesStore responses_;
  std::mutex mutex_;
  std::set<std::string> noted_;
  const std::unique_ptr<FileStore> files_;
  ServedAdapters adapters_;
  Models models_;  // ends before what its requests use
  Batches batches_;
  Worker file_worker_;
};

// A prompt that is too long for the context. If the request writes an answer, that needs room too (needs_room). Agents
// shorten their history when they see these very words and this code.
struct ContextOverflow {
  uint64_t prompt_tokens = 0;
  uint32_t ctx_len = 0;
  bool needs_room = true;
};
inline constexpr const char* kContextLengthExceeded = "context_length_exceeded";
Error overflow_error(const Exchange& exchange, const ContextOverflow& overflow);

// Says whether the answer is in Anthropic's shape. The path decides, or for lists of models the header with the version
// of Anthropic's API.
bool is_for_anthropic(const Exchange& exchange);
// Writes seconds since 1970 as "2026-11-28T09:00:00Z".
std::string utc_text(int64_t seconds);
// Writes an error in the shape of the API that was called.
std::string error_text(const Exchange& exchange, const std::string& message, const char* type,
                       const char* code = nullptr);
void reply_error(Exchange& exchange, int status, const std::string& message, const char* type,
                 const char* code = nullptr, HttpFields fields = {});
void reply_error(Exchange& exchange, const Error& error, const char* code = nullptr);
void reply_json(Exchange& exchange, const Json& body);
// The fields of a body that are not among those.
std::vector<std::string> unknown_fields(const Json& body, std::span<const std::string_view> known);
// The request's body, an object. Errors: what it is instead.
Result<Json> body_of(const Exchange& exchange);

}  // namespace doppler::server
