// The contents of doppler_c.h's handles, and the steps that all its functions take: check pointers, turn a Result into
// an error, hand a result out. Read next: structs.h.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "doppler/doppler.h"
#include "doppler/doppler_c.h"
#include "doppler/scheduler.h"

struct doppler_error {
  doppler::ErrorKind kind;
  std::string message;
};

struct doppler_model {
  doppler::Model model;
};

struct doppler_session {
  doppler::Session session;
  std::string text;  // what the last _next gave
};

struct doppler_scheduler {
  doppler::Scheduler scheduler;
};

struct doppler_stream {
  doppler::Stream stream;
  std::string text;
};

struct doppler_generation {
  doppler::Generation generation;
};

namespace doppler::capi {

// An argument that must not be NULL.
struct Given {
  const char* name;
  const void* pointer;
};

// NULL if all are given.
doppler_error* check_given(const char* function, std::initializer_list<Given> arguments);
doppler_error* error_of(Error error);

// Checks the arguments, then runs `body`, which returns a Result<void>. `function` is __func__.
template <class Body>
doppler_error* call(const char* function, std::initializer_list<Given> arguments, Body body) {
  if (doppler_error* error = check_given(function, arguments)) return error;
  auto done = body();
  return done ? nullptr : error_of(std::move(done).error());
}

// An array is given if it has no elements.
inline Given given_array(const char* name, const void* pointer, size_t count) {
  return {name, count == 0 ? "" : pointer};
}

template <class T>
void clear(T* out) {
  if (out) *out = T();
}

// The caller owns it until the handle's _free.
template <class Handle, class... Parts>
Handle* make_handle(Parts&&... parts) {
  return std::make_unique<Handle>(Handle{std::forward<Parts>(parts)...}).release();
}
template <class Handle>
void free_handle(Handle* handle) {
  const std::unique_ptr<Handle> owner(handle);
}

// For doppler_free. Error: memory.
Result<char*> copy_text(std::string_view text);
Result<int32_t*> copy_tokens(std::span<const int32_t> tokens);

// A _next of a session or a stream: keeps the text that the caller reads.
template <class Source>
Result<void> give_next(Source& source, std::string& kept, const char** text, size_t* length) {
  DP_TRY(std::optional<std::string> piece, source.next());
  if (!piece) return {};
  kept = std::move(*piece);
  *text = kept.c_str();
  if (length) *length = kept.size();
  return {};
}

}  // namespace doppler::capi
