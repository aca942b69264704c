// The structs of doppler_c.h and their counterparts in C++. A struct opens with its size: a program compiled with an
// older header has a shorter struct than the library, one with a newer header a longer one.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "capi/handles.h"

namespace doppler::capi {

// The size of a struct's first version: smaller ones were not initialised.
template <class Struct>
inline constexpr size_t kFirstSize = sizeof(Struct);

// The struct that the caller gave, as the library's header has it: what is missing comes from `defaults`. Error: the
// size cannot be, or something is set that this library does not know.
template <class Struct>
Result<Struct> read_struct(const char* name, const Struct* given, const Struct& defaults) {
  Struct out = defaults;
  if (!given) return out;
  if (given->size < kFirstSize<Struct>) {
    return fail(ErrorKind::kInvalidInput, "The size in %s is %zu; %zu or more is expected (sizeof(%s)).",
                name, given->size, kFirstSize<Struct>, name);
  }
  const auto* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof(Struct); i < given->size; ++i) {
    if (bytes[i] != 0) {
      return fail(ErrorKind::kUnsupported,
                  "Byte %zu of %s is set; this library knows the first %zu (its doppler_c_version() is %u).",
                  i, name, sizeof(Struct), DOPPLER_C_VERSION);
    }
  }
  std::memcpy(static_cast<void*>(&out), given, std::min(given->size, sizeof(Struct)));
  out.size = sizeof(Struct);
  return out;
}

// Fills what the caller's struct has room for; the rest of a larger one becomes 0.
template <class Struct>
Result<void> fill_struct(const char* name, Struct* target, Struct values) {
  const size_t size = target->size;
  if (size < kFirstSize<Struct>) {
    return fail(ErrorKind::kInvalidInput, "The size in %s is %zu; %zu or more is expected (sizeof(%s)).",
                name, size, kFirstSize<Struct>, name);
  }
  std::memset(static_cast<void*>(target), 0, size);
  values.size = size;
  std::memcpy(static_cast<void*>(target), &values, std::min(size, sizeof(Struct)));
  return {};
}

// The defaults of an _init function, as far as the caller's struct goes.
template <class Struct>
void init_struct(Struct* target, size_t size, Struct defaults) {
  if (!target || size < sizeof(size_t)) return;
  std::memset(static_cast<void*>(target), 0, size);
  defaults.size = size;
  std::memcpy(static_cast<void*>(target), &defaults, std::min(size, sizeof(Struct)));
}

Result<LoadOptions> load_options(const doppler_load_options* options);
Result<GenerateOptions> generate_options(const doppler_generate_options* options);
Result<std::vector<Message>> messages_of(const doppler_message* messages, size_t count);
Result<Request> request_of(const doppler_request* request);
TextCallback text_callback(doppler_on_text on_text, void* data);

}  // namespace doppler::capi
