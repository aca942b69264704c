#include "server/routes.h"

namespace doppler::server {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/health", answer_health},
    {"GET", "/v1/models", answer_models},
    {"GET", "/v1/models/*", answer_model},
    {"POST", "/v1/chat/completions", answer_chat},
    {"POST", "/v1/completions", answer_completions},
    {"POST", "/v1/load_lora_adapter", answer_load_adapter},
    {"POST", "/v1/unload_lora_adapter", answer_unload_adapter},
    {"GET", "/lora-adapters", answer_adapters},
    {"POST", "/lora-adapters", answer_set_adapters},
    {"POST", "/v1/embeddings", answer_embeddings},
    {"POST", "/v1/rerank", answer_rerank},
    {"POST", "/v1/responses", answer_responses},
    {"POST", "/v1/responses/input_tokens", answer_input_tokens},
    {"GET", "/v1/responses/*", answer_response},
    {"DELETE", "/v1/responses/*", answer_delete_response},
    {"POST", "/v1/responses/*", answer_cancel_response},
    {"POST", "/v1/files", answer_upload},
    {"GET", "/v1/files", answer_files},
    {"GET", "/v1/files/*", answer_file},
    {"DELETE", "/v1/files/*", answer_delete_file},
    {"POST", "/v1/batches", answer_create_batch},
    {"GET", "/v1/batches", answer_batches},
    {"GET", "/v1/batches/*", answer_batch},
    {"POST", "/v1/batches/*", answer_cancel_batch},
    {"POST", "/v1/messages", answer_messages},
    {"POST", "/v1/messages/count_tokens", answer_count_tokens},
    {"POST", "/api/chat", answer_ollama_chat},
    {"POST", "/api/generate", answer_ollama_generate},
    {"POST", "/api/embed", answer_ollama_embed},
    {"POST", "/api/embeddings", answer_ollama_embeddings},
    {"GET", "/", answer_ollama_running},
    {"GET", "/api/tags", answer_ollama_tags},
    {"GET", "/api/ps", answer_ollama_ps},
    {"POST", "/api/show", answer_ollama_show},
    {"GET", "/api/version", answer_ollama_version},
    // Shorter paths, as llama.cpp has them.
    {"GET", "/models", answer_models},
    {"GET", "/models/*", answer_model},
    {"POST", "/chat/completions", answer_chat},
    {"POST", "/completions", answer_completions},
    {"POST", "/embeddings", answer_embeddings},
    {"POST", "/rerank", answer_rerank},
    {"POST", "/tokenize", answer_tokenize},
    {"POST", "/detokenize", answer_detokenize},
    {"POST", "/apply-template", answer_template},
    {"GET", "/props", answer_props},
    {"GET", "/slots", answer_slots},
    {"GET", "/metrics", answer_metrics},
};

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.starts_with(pattern) && path.size() > pattern.size();
}

}  // namespace

const Route* find_route(std::string_view method, std::string_view path, std::string* allowed) {
  allowed->clear();
  for (const Route& route : kRoutes) {
    if (!matches(route.path, path)) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) return &route;
    if (allowed->find(route.method) != std::string::npos) continue;
    if (!allowed->empty()) *allowed += ", ";
    *allowed += route.method;
    if (route.method == "GET") *allowed += ", HEAD";
  }
  return nullptr;
}

}  // namespace doppler::server
