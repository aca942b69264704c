// Vectors of texts and scores of texts for a query, by models that write no text.
#include "engine/embed.h"
#include "web/web_model.h"
#include "web/web_options.h"

namespace doppler::web {
namespace {

Result<std::string> text_of(const Json& request, std::string_view key) {
  DP_TRY(auto text, get_string(request, key));
  if (text) return std::move(*text);
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a text.", std::string(key).c_str());
}

}  // namespace

Task<Result<Embedding>> WebModel::embed(Json request) {
  DP_CO_CHECK(check_idle());
  DP_CO_TRY(const EmbedOptions options, read_embed_options(request));
  DP_CO_TRY(const std::vector<int32_t> ids, read_tokens(request, "tokens"));
  auto running = engine::embed(*loaded_->runner, {ids.begin(), ids.end()}, options);
  co_return co_await std::move(running);
}

Task<Result<Json>> WebModel::rerank(Json request) {
  DP_CO_CHECK(check_idle());
  DP_CO_TRY(const std::string query, text_of(request, "query"));
  DP_CO_TRY(const std::string text, text_of(request, "text"));
  auto running = engine::rerank_score(*loaded_, query, text);
  DP_CO_TRY(const engine::Score score, co_await std::move(running));
  co_return Json({{"score", score.value}, {"tokens", score.tokens}});
}

}  // namespace doppler::web
