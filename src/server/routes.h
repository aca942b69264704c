// The endpoint of each path.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/service.h"

namespace doppler::server {

struct Call {
  std::shared_ptr<Exchange> exchange;
  std::string rest;  // what stands for "*" in the route's path
};

struct Route {
  std::string_view method, path;  // a path may end with "*"
  void (*handle)(Service& service, const Call& call);
};

// Null: there is no such path, or it has other methods. `allowed` then gets these methods in the form of the field
// Allow.
const Route* find_route(std::string_view method, std::string_view path, std::string* allowed);

// ---- The endpoints, a file of src/server/apis an API.
void answer_health(Service& service, const Call& call);
void answer_models(Service& service, const Call& call);
void answer_model(Service& service, const Call& call);
void answer_chat(Service& service, const Call& call);
void answer_completions(Service& service, const Call& call);
void answer_load_adapter(Service& service, const Call& call);
void answer_unload_adapter(Service& service, const Call& call);
void answer_adapters(Service& service, const Call& call);
void answer_set_adapters(Service& service, const Call& call);
void answer_embeddings(Service& service, const Call& call);
void answer_rerank(Service& service, const Call& call);
void answer_upload(Service& service, const Call& call);
void answer_files(Service& service, const Call& call);
void answer_file(Service& service, const Call& call);
void answer_delete_file(Service& service, const Call& call);
void answer_create_batch(Service& service, const Call& call);
void answer_batches(Service& service, const Call& call);
void answer_batch(Service& service, const Call& call);
void answer_cancel_batch(Service& service, const Call& call);
void answer_messages(Service& service, const Call& call);
void answer_count_tokens(Service& service, const Call& call);
void answer_input_tokens(Service& service, const Call& call);
void answer_responses(Service& service, const Call& call);
void answer_response(Service& service, const Call& call);
void answer_delete_response(Service& service, const Call& call);
void answer_cancel_response(Service& service, const Call& call);
void answer_ollama_chat(Service& service, const Call& call);
void answer_ollama_generate(Service& service, const Call& call);
void answer_ollama_embed(Service& service, const Call& call);
void answer_ollama_embeddings(Service& service, const Call& call);
void answer_ollama_tags(Service& service, const Call& call);
void answer_ollama_ps(Service& service, const Call& call);
void answer_ollama_show(Service& service, const Call& call);
void answer_ollama_running(Service& service, const Call& call);
void answer_ollama_version(Service& service, const Call& call);
void answer_tokenize(Service& service, const Call& call);
void answer_detokenize(Service& service, const Call& call);
void answer_template(Service& service, const Call& call);
void answer_props(Service& service, const Call& call);
void answer_slots(Service& service, const Call& call);
void answer_metrics(Service& service, const Call& call);

}  // namespace doppler::server
