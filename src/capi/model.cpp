// doppler_c.h: models.
#include "capi/structs.h"

using namespace doppler::capi;
using doppler::Result;

doppler_error* doppler_model_load(const char* path, const doppler_load_options* options,
                                  doppler_model** model) {
  clear(model);
  return call(__func__, {{"path", path}, {"model", model}}, [&]() -> Result<void> {
    DP_TRY(const doppler::LoadOptions chosen, load_options(options));
    DP_TRY(doppler::Model loaded, doppler::Model::load(path, chosen));
    *model = make_handle<doppler_model>(std::move(loaded));
    return {};
  });
}

void doppler_model_free(doppler_model* model) { free_handle(model); }

doppler_error* doppler_model_load_adapter(doppler_model* model, const char* name, const char* path) {
  return call(__func__, {{"model", model}, {"name", name}, {"path", path}},
              [&] { return model->model.load_adapter(name, path); });
}

doppler_error* doppler_model_unload_adapter(doppler_model* model, const char* name) {
  return call(__func__, {{"model", model}, {"name", name}},
              [&] { return model->model.unload_adapter(name); });
}

doppler_error* doppler_model_get_info(const doppler_model* model, doppler_model_info* info) {
  return call(__func__, {{"model", model}, {"info", info}}, [&] {
    const doppler::ModelInfo& from = model->model.info();
    doppler_model_info out = {};
    out.name = from.name.c_str();
    out.architecture = from.architecture.c_str();
    out.adapter = from.adapter.c_str();
    out.provider = from.provider.c_str();
    out.vocab_size = from.vocab_size;
    out.ctx_len = from.ctx_len;
    out.trained_ctx_len = from.trained_ctx_len;
    out.n_layers = from.n_layers;
    out.weight_bytes = from.weight_bytes;
    out.cache_bytes = from.cache_bytes;
    out.scratch_bytes = from.scratch_bytes;
    out.load_seconds = from.load.seconds;
    out.synthetic = from.synthetic;
    out.has_tokenizer = from.has_tokenizer;
    out.has_chat_template = from.has_chat_template;
    return fill_struct("doppler_model_info", info, out);
  });
}

doppler_error* doppler_model_tokenize(const doppler_model* model, const char* text, size_t length,
                                      bool add_special, bool parse_special, int32_t** tokens, size_t* count) {
  clear(tokens);
  clear(count);
  return call(__func__,
              {{"model", model}, given_array("text", text, length), {"tokens", tokens}, {"count", count}},
              [&]() -> Result<void> {
                DP_TRY(const std::vector<int32_t> ids,
                       model->model.tokenize({length == 0 ? "" : text, length}, add_special, parse_special));
                DP_TRY(*tokens, copy_tokens(ids));
                *count = ids.size();
                return {};
              });
}

doppler_error* doppler_model_detokenize(const doppler_model* model, const int32_t* tokens, size_t count,
                                        char** text, size_t* length) {
  clear(text);
  clear(length);
  return call(__func__, {{"model", model}, given_array("tokens", tokens, count), {"text", text}},
              [&]() -> Result<void> {
                DP_TRY(const std::string whole, model->model.detokenize({tokens, count}));
                DP_TRY(*text, copy_text(whole));
                if (length) *length = whole.size();
                return {};
              });
}

doppler_error* doppler_model_apply_chat_template(const doppler_model* model, const doppler_message* messages,
                                                 size_t count, bool add_generation_prompt, char** text,
                                                 size_t* length) {
  clear(text);
  clear(length);
  return call(__func__, {{"model", model}, given_array("messages", messages, count), {"text", text}},
              [&]() -> Result<void> {
                DP_TRY(const std::vector<doppler::Message> conversation, messages_of(messages, count));
                DP_TRY(const std::string whole,
                       model->model.apply_chat_template(conversation, add_generation_prompt));
                DP_TRY(*text, copy_text(whole));
                if (length) *length = whole.size();
                return {};
              });
}

doppler_error* doppler_model_new_session(doppler_model* model, doppler_session** session) {
  clear(session);
  return call(__func__, {{"model", model}, {"session", session}}, [&]() -> Result<void> {
    *session = make_handle<doppler_session>(model->model.new_session());
    return {};
  });
}

doppler_error* doppler_model_get_scheduler(doppler_model* model, doppler_scheduler** scheduler) {
  clear(scheduler);
  return call(__func__, {{"model", model}, {"scheduler", scheduler}}, [&]() -> Result<void> {
    DP_TRY(doppler::Scheduler made, model->model.scheduler());
    *scheduler = make_handle<doppler_scheduler>(std::move(made));
    return {};
  });
}
