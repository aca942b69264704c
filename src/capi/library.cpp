// doppler_c.h: the library, errors and generations.
#include <cstdlib>
#include <cstring>

#include "capi/structs.h"

namespace doppler::capi {
namespace {

// The numbers of doppler_c.h are C++'s: errors begin at 1, because 0 is none.
constexpr int kind_of(ErrorKind kind) { return static_cast<int>(kind) + 1; }
static_assert(kind_of(ErrorKind::kInvalidInput) == DOPPLER_INVALID_INPUT);
static_assert(kind_of(ErrorKind::kInternal) == DOPPLER_INTERNAL);
static_assert(static_cast<int>(StopReason::kEndOfText) == DOPPLER_STOP_END_OF_TEXT);
static_assert(static_cast<int>(StopReason::kCancelled) == DOPPLER_STOP_CANCELLED);
static_assert(static_cast<int>(WhenFull::kStop) == DOPPLER_FULL_STOP);
static_assert(static_cast<int>(WhenFull::kSlide) == DOPPLER_FULL_SLIDE);

Result<void*> allocate(size_t bytes) {
  if (void* memory = std::malloc(bytes)) return memory;
  return fail(ErrorKind::kOutOfMemory, "There is no memory for a result of %zu bytes.", bytes);
}

}  // namespace

doppler_error* error_of(Error error) { return make_handle<doppler_error>(error.kind(), error.message()); }

doppler_error* check_given(const char* function, std::initializer_list<Given> arguments) {
  for (const Given& argument : arguments) {
    if (argument.pointer) continue;
    return error_of(Error(ErrorKind::kInvalidInput,
                          format_text("The argument %s of %s is NULL.", argument.name, function)));
  }
  return nullptr;
}

Result<char*> copy_text(std::string_view text) {
  DP_TRY(void* memory, allocate(text.size() + 1));
  char* out = static_cast<char*>(memory);
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return out;
}

Result<int32_t*> copy_tokens(std::span<const int32_t> tokens) {
  DP_TRY(void* memory, allocate(tokens.size_bytes() + 1));  // an empty list is not NULL either
  if (!tokens.empty()) std::memcpy(memory, tokens.data(), tokens.size_bytes());
  return static_cast<int32_t*>(memory);
}

}  // namespace doppler::capi

using namespace doppler::capi;

uint32_t doppler_c_version(void) { return DOPPLER_C_VERSION; }
const char* doppler_version(void) { return DOPPLER_VERSION; }
void doppler_free(void* memory) { std::free(memory); }

doppler_error_kind doppler_error_get_kind(const doppler_error* error) {
  return error ? static_cast<doppler_error_kind>(kind_of(error->kind)) : DOPPLER_OK;
}
const char* doppler_error_message(const doppler_error* error) { return error ? error->message.c_str() : ""; }
void doppler_error_free(doppler_error* error) { free_handle(error); }

const char* doppler_stop_reason_name(doppler_stop_reason reason) {
  if (reason < DOPPLER_STOP_END_OF_TEXT || reason > DOPPLER_STOP_CANCELLED) return "unknown";
  return doppler::stop_reason_name(static_cast<doppler::StopReason>(reason));
}

const char* doppler_generation_text(const doppler_generation* generation, size_t* length) {
  clear(length);
  if (!generation) return "";
  if (length) *length = generation->generation.text.size();
  return generation->generation.text.c_str();
}

const int32_t* doppler_generation_tokens(const doppler_generation* generation, size_t* count) {
  clear(count);
  if (!generation) return nullptr;
  if (count) *count = generation->generation.tokens.size();
  return generation->generation.tokens.data();
}

doppler_stop_reason doppler_generation_stop_reason(const doppler_generation* generation) {
  return generation ? static_cast<doppler_stop_reason>(generation->generation.stop) : DOPPLER_STOP_CANCELLED;
}

doppler_error* doppler_generation_get_timings(const doppler_generation* generation,
                                              doppler_timings* timings) {
  return call(__func__, {{"generation", generation}, {"timings", timings}}, [&] {
    const doppler::Timings& from = generation->generation.timings;
    doppler_timings out = {};
    out.prompt_tokens = from.prompt_tokens;
    out.evaluated_tokens = from.evaluated_tokens;
    out.cached_tokens = from.cached_tokens;
    out.generated_tokens = from.generated_tokens;
    out.queued_seconds = from.queued_seconds;
    out.ttft_seconds = from.ttft_seconds;
    out.decode_seconds = from.interval_seconds();
    out.forced_tokens = from.forced_tokens;
    out.drafted_tokens = from.drafted_tokens;
    out.accepted_tokens = from.accepted_tokens;
    out.preemptions = from.preemptions;
    return fill_struct("doppler_timings", timings, out);
  });
}

doppler_error* doppler_generation_get_logprobs(const doppler_generation* generation, size_t index,
                                               doppler_token_logprob* own, doppler_token_logprob* best,
                                               size_t capacity, size_t* count) {
  return call(
      __func__,
      {{"generation", generation}, {"own", own}, given_array("best", best, capacity), {"count", count}},
      [&]() -> doppler::Result<void> {
        const doppler::Generation& from = generation->generation;
        if (index >= from.logprobs.size()) {
          return doppler::fail(doppler::ErrorKind::kInvalidInput,
                               "Token %zu was named; the generation has log-probabilities of %zu.", index,
                               from.logprobs.size());
        }
        const doppler::TokenLogprobs& of = from.logprobs[index];
        *own = {from.tokens[index], of.logprob};
        *count = of.top.size();
        for (size_t i = 0; i < std::min(capacity, of.top.size()); ++i) {
          best[i] = {of.top[i].first, of.top[i].second};
        }
        return {};
      });
}

void doppler_generation_free(doppler_generation* generation) { free_handle(generation); }
