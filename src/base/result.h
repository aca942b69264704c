// Making and passing on errors; Error and Result themselves are public (include/doppler/result.h).
// Read next: text.h (formatting), task.h (Result inside coroutines).
#pragma once

#include "doppler/result.h"

namespace doppler {

// printf-style: return fail(ErrorKind::kInvalidInput, "Column count (%u) is not a multiple of %u.", k, block);
[[gnu::format(printf, 2, 3)]] Unexpected fail(ErrorKind kind, const char* format, ...);

inline Unexpected forward(Error error) { return Unexpected(std::move(error)); }

}  // namespace doppler

#define DP_CONCAT_INNER(a, b) a##b
#define DP_CONCAT(a, b) DP_CONCAT_INNER(a, b)

// DP_TRY(auto header, read_header(bytes));  binds the value or returns the error.
#define DP_TRY(declaration, expression) DP_TRY_IMPL(DP_CONCAT(dp_result_, __LINE__), declaration, expression)
#define DP_TRY_IMPL(result, declaration, expression)                 \
  auto result = (expression);                                        \
  if (!result) return ::doppler::forward(std::move(result).error()); \
  declaration = std::move(*result)

// DP_CHECK(write(...));  for Result<void>.
#define DP_CHECK(expression)                                                                                \
  do {                                                                                                      \
    if (auto dp_result = (expression); !dp_result) return ::doppler::forward(std::move(dp_result).error()); \
  } while (0)

// DP_CHECK_WHILE(load(t), "loading tensor %s", name);
#define DP_CHECK_WHILE(expression, ...)                                                 \
  do {                                                                                  \
    if (auto dp_result = (expression); !dp_result)                                      \
      return ::doppler::forward(                                                        \
          std::move(dp_result).error().add_while(::doppler::format_text(__VA_ARGS__))); \
  } while (0)

// The same inside coroutines (base/task.h).
#define DP_CO_TRY(declaration, expression) \
  DP_CO_TRY_IMPL(DP_CONCAT(dp_result_, __LINE__), declaration, expression)
#define DP_CO_TRY_IMPL(result, declaration, expression)                 \
  auto result = (expression);                                           \
  if (!result) co_return ::doppler::forward(std::move(result).error()); \
  declaration = std::move(*result)
#define DP_CO_CHECK(expression)                                   \
  do {                                                            \
    if (auto dp_result = (expression); !dp_result)                \
      co_return ::doppler::forward(std::move(dp_result).error()); \
  } while (0)
#define DP_CO_CHECK_WHILE(expression, ...)                                              \
  do {                                                                                  \
    if (auto dp_result = (expression); !dp_result)                                      \
      co_return ::doppler::forward(                                                     \
          std::move(dp_result).error().add_while(::doppler::format_text(__VA_ARGS__))); \
  } while (0)

#include "base/text.h"
