// doppler_c.h: sessions.
#include "capi/structs.h"

using namespace doppler::capi;
using doppler::Result;

namespace {

Result<void> give(Result<doppler::Generation> made, doppler_generation** generation) {
  if (!made) return doppler::forward(std::move(made).error());
  *generation = make_handle<doppler_generation>(std::move(*made));
  return {};
}

}  // namespace

void doppler_session_free(doppler_session* session) { free_handle(session); }

doppler_error* doppler_session_generate(doppler_session* session, const char* prompt,
                                        const doppler_generate_options* options, doppler_on_text on_text,
                                        void* data, doppler_generation** generation) {
  clear(generation);
  return call(__func__, {{"session", session}, {"prompt", prompt}, {"generation", generation}},
              [&]() -> Result<void> {
                DP_TRY(const doppler::GenerateOptions chosen, generate_options(options));
                return give(
                    session->session.generate(std::string_view(prompt), chosen, text_callback(on_text, data)),
                    generation);
              });
}

doppler_error* doppler_session_generate_tokens(doppler_session* session, const int32_t* prompt, size_t count,
                                               const doppler_generate_options* options,
                                               doppler_on_text on_text, void* data,
                                               doppler_generation** generation) {
  clear(generation);
  return call(
      __func__, {{"session", session}, given_array("prompt", prompt, count), {"generation", generation}},
      [&]() -> Result<void> {
        DP_TRY(const doppler::GenerateOptions chosen, generate_options(options));
        return give(session->session.generate(std::span(prompt, count), chosen, text_callback(on_text, data)),
                    generation);
      });
}

doppler_error* doppler_session_chat(doppler_session* session, const doppler_message* messages, size_t count,
                                    const doppler_generate_options* options, doppler_on_text on_text,
                                    void* data, doppler_generation** generation) {
  clear(generation);
  return call(
      __func__, {{"session", session}, given_array("messages", messages, count), {"generation", generation}},
      [&]() -> Result<void> {
        DP_TRY(const std::vector<doppler::Message> conversation, messages_of(messages, count));
        DP_TRY(const doppler::GenerateOptions chosen, generate_options(options));
        return give(session->session.chat(conversation, chosen, text_callback(on_text, data)), generation);
      });
}

doppler_error* doppler_session_start(doppler_session* session, const char* prompt,
                                     const doppler_generate_options* options) {
  return call(__func__, {{"session", session}, {"prompt", prompt}}, [&]() -> Result<void> {
    DP_TRY(const doppler::GenerateOptions chosen, generate_options(options));
    return session->session.start(prompt, chosen);
  });
}

doppler_error* doppler_session_next(doppler_session* session, const char** text, size_t* length) {
  clear(text);
  clear(length);
  return call(__func__, {{"session", session}, {"text", text}},
              [&] { return give_next(session->session, session->text, text, length); });
}

doppler_error* doppler_session_finish(doppler_session* session, doppler_generation** generation) {
  clear(generation);
  return call(__func__, {{"session", session}, {"generation", generation}},
              [&] { return give(session->session.finish(), generation); });
}

void doppler_session_cancel(doppler_session* session) {
  if (session) session->session.cancel();
}

void doppler_session_reset(doppler_session* session) {
  if (session) session->session.reset();
}

const int32_t* doppler_session_tokens(const doppler_session* session, size_t* count) {
  clear(count);
  if (!session) return nullptr;
  const std::span<const int32_t> tokens = session->session.tokens();
  if (count) *count = tokens.size();
  return tokens.data();
}

doppler_error* doppler_session_fork(const doppler_session* session, doppler_session** fork) {
  clear(fork);
  return call(__func__, {{"session", session}, {"fork", fork}}, [&]() -> Result<void> {
    *fork = make_handle<doppler_session>(session->session.fork());
    return {};
  });
}

doppler_error* doppler_session_save(doppler_session* session, const char* path) {
  return call(__func__, {{"session", session}, {"path", path}}, [&] { return session->session.save(path); });
}

doppler_error* doppler_session_restore(doppler_session* session, const char* path) {
  return call(__func__, {{"session", session}, {"path", path}},
              [&] { return session->session.restore(path); });
}
