// Errors are values. A function that can fail returns Result<T>; the Error holds one sentence for a person
// and a chain of "While ..." lines added by the callers it passes through. Nothing here throws.
// Read next: text.h (formatting), task.h (Result inside coroutines).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace doppler {

// What kind of failure, so that a program (exit code, HTTP status) can react without reading the sentence.
enum class ErrorKind : uint8_t {
  kInvalidInput,   // a file, flag or request is wrong: exit code 2 for flags, 1 for files
  kUnsupported,    // valid, but this build or device cannot do it
  kOutOfMemory,    // host or device memory
  kDevice,         // the GPU, its driver or the WebGPU provider failed
  kIo,             // reading or writing failed
  kCancelled,      // the caller asked to stop
  kInternal,       // a fault of ours
};

class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string sentence) : kind_(kind), sentence_(std::move(sentence)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& sentence() const { return sentence_; }
  const std::vector<std::string>& whiles() const { return whiles_; }
  // "<sentence>\n  While loading blk.3.attn_q.\n  While opening x.gguf."
  std::string message() const;
  Error&& add_while(std::string what) && {
    whiles_.push_back(std::move(what));
    return std::move(*this);
  }

 private:
  ErrorKind kind_;
  std::string sentence_;
  std::vector<std::string> whiles_;  // innermost first, each without the word "While" and the full stop
};

template <class T = void>
using Result = std::expected<T, Error>;

// printf-style: return fail(ErrorKind::kInvalidInput, "Column count (%u) is not a multiple of %u.", k, block);
[[gnu::format(printf, 2, 3)]] std::unexpected<Error> fail(ErrorKind kind, const char* format, ...);

inline std::unexpected<Error> forward(Error error) { return std::unexpected<Error>(std::move(error)); }

}  // namespace doppler

#define DP_CONCAT_INNER(a, b) a##b
#define DP_CONCAT(a, b) DP_CONCAT_INNER(a, b)

// DP_TRY(auto header, read_header(bytes));  binds the value or returns the error.
#define DP_TRY(declaration, expression) DP_TRY_IMPL(DP_CONCAT(dp_result_, __LINE__), declaration, expression)
#define DP_TRY_IMPL(result, declaration, expression)                      \
  auto result = (expression);                                             \
  if (!result) return ::doppler::forward(std::move(result).error());      \
  declaration = std::move(*result)

// DP_CHECK(write(...));  for Result<void>.
#define DP_CHECK(expression)                                                            \
  do {                                                                                  \
    if (auto dp_result = (expression); !dp_result)                                      \
      return ::doppler::forward(std::move(dp_result).error());                          \
  } while (0)

// DP_CHECK_WHILE(load(t), "loading tensor %s", name);
#define DP_CHECK_WHILE(expression, ...)                                                 \
  do {                                                                                  \
    if (auto dp_result = (expression); !dp_result)                                      \
      return ::doppler::forward(                                                        \
          std::move(dp_result).error().add_while(::doppler::format_text(__VA_ARGS__))); \
  } while (0)

// The same inside coroutines (base/task.h).
#define DP_CO_TRY(declaration, expression) DP_CO_TRY_IMPL(DP_CONCAT(dp_result_, __LINE__), declaration, expression)
#define DP_CO_TRY_IMPL(result, declaration, expression)                   \
  auto result = (expression);                                             \
  if (!result) co_return ::doppler::forward(std::move(result).error());   \
  declaration = std::move(*result)
#define DP_CO_CHECK(expression)                                           \
  do {                                                                    \
    if (auto dp_result = (expression); !dp_result)                        \
      co_return ::doppler::forward(std::move(dp_result).error());         \
  } while (0)

#include "base/text.h"
