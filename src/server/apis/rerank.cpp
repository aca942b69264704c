// /v1/rerank, as Jina's, Cohere's and llama.cpp's servers have it: scores how well texts answer a query, the best
// first. The texts are scored one after another on the model's thread.
#include <algorithm>
#include <functional>

#include "base/json.h"
#include "base/text.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

constexpr size_t kMostDocuments = 2048;  // as inputs of embeddings
constexpr std::string_view kRerankFields[] = {"model", "query", "documents", "top_n", "return_documents",
                                              "user"};

struct RerankAsked {
  std::string model, query;
  std::vector<std::string> documents;
  uint32_t most = 0;  // of the results
  bool tells_documents = false;
};

struct Scored {
  size_t index;
  float score;
};

Result<std::vector<std::string>> documents_of(const Json& body) {
  const Json* list = find(body, "documents");
  if (!list || !list->is_array() || list->empty()) {
    return fail(ErrorKind::kInvalidInput, "Field \"documents\" must be a list of texts.");
  }
  if (list->size() > kMostDocuments) {
    return fail(ErrorKind::kInvalidInput, "Field \"documents\" has %zu entries; at most %zu are allowed.",
                list->size(), kMostDocuments);
  }
  std::vector<std::string> out;
  for (const Json& entry : *list) {
    const Json* text = entry.is_object() ? find(entry, "text") : &entry;
    if (!text || !text->is_string()) {
      return fail(
          ErrorKind::kInvalidInput,
          "Field \"documents\" must be a list of texts, or of objects with \"text\"; number %zu is %s.",
          out.size(), printable(to_text(entry)).c_str());
    }
    out.push_back(text->get<std::string>());
  }
  return out;
}

Result<RerankAsked> read_asked(const Json& body) {
  RerankAsked asked;
  DP_TRY(const auto model, get_string(body, "model"));
  asked.model = model.value_or("");
  DP_TRY(const auto query, get_string(body, "query"));
  if (!query) return fail(ErrorKind::kInvalidInput, "Field \"query\" must be a text.");
  asked.query = *query;
  DP_TRY(asked.documents, documents_of(body));
  DP_TRY(const auto most, get_integer(body, "top_n"));
  if (most && *most < 1) {
    return fail(ErrorKind::kInvalidInput, "Field \"top_n\" is %lld; allowed is 1 or more.",
                static_cast<long long>(*most));
  }
  const auto count = static_cast<int64_t>(asked.documents.size());
  asked.most = static_cast<uint32_t>(std::min(most.value_or(count), count));
  DP_TRY(const auto tells, get_bool(body, "return_documents"));
  asked.tells_documents = tells.value_or(false);
  return asked;
}

struct AllScored {
  std::vector<Scored> best_first;  // none: the client left
  uint64_t tokens = 0;
};

Result<AllScored> score_all(ReadyModel& ready, const RerankAsked& asked, const Exchange& exchange) {
  AllScored out;
  std::vector<Scored>& scored = out.best_first;
  for (const std::string& document : asked.documents) {
    if (exchange.is_gone()) return AllScored();
    uint32_t tokens = 0;
    DP_TRY(const float score, ready.model.rerank(asked.query, document, &tokens));
    scored.push_back({.index = scored.size(), .score = score});
    out.tokens += tokens;
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &Scored::score);
  return out;
}

Json answer_body(const RerankAsked& asked, const std::string& model, const AllScored& all) {
  const std::vector<Scored>& scored = all.best_first;
  Json results = Json::array();
  for (uint32_t i = 0; i < asked.most; ++i) {
    Json one = {{"index", scored[i].index}, {"relevance_score", scored[i].score}};
    if (asked.tells_documents) one["document"] = {{"text", asked.documents[scored[i].index]}};
    results.push_back(std::move(one));
  }
  return {{"object", "list"},
          {"model", model},
          {"usage", {{"prompt_tokens", all.tokens}, {"total_tokens", all.tokens}}},
          {"results", std::move(results)}};
}

}  // namespace

void answer_rerank(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  auto asked = read_asked(*body);
  if (!asked) return reply_error(*call.exchange, asked.error());
  service.note_ignored(unknown_fields(*body, kRerankFields));
  const std::string name = asked->model;
  service.with_model(
      call.exchange, name, [exchange = call.exchange, asked = std::move(*asked)](ReadyModel& ready) {
        const auto scored = score_all(ready, asked, *exchange);
        if (!scored) return reply_error(*exchange, scored.error());
        if (scored->best_first.empty()) return;
        exchange->tell(
            {.model = ready.name, .finish = "stop", .prompt_tokens = static_cast<uint32_t>(scored->tokens)});
        reply_json(*exchange, answer_body(asked, ready.name, *scored));
      });
}

}  // namespace doppler::server
