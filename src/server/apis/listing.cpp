#include "server/apis/listing.h"

#include <algorithm>

#include "base/text.h"
#include "server/multipart.h"

namespace doppler::server {

void reply_listing(Exchange& exchange, std::vector<Json> items) {
  constexpr int64_t kUsualLimit = 100, kMostLimit = 10'000;
  const std::string& query = exchange.request().query;
  const std::string limit_text = query_value(query, "limit").value_or(std::to_string(kUsualLimit));
  const auto limit = parse_int(limit_text);
  if (!limit || *limit < 1 || *limit > kMostLimit) {
    return reply_error(exchange,
                       Error(ErrorKind::kInvalidInput,
                             format_text("Field \"limit\" is \"%s\"; allowed is 1 to %lld.",
                                         printable(limit_text).c_str(), static_cast<long long>(kMostLimit))));
  }
  if (query_value(query, "order").value_or("desc") != "asc") std::ranges::reverse(items);
  if (const auto after = query_value(query, "after")) {
    const auto found = std::ranges::find(items, Json(*after), [](const Json& item) { return item["id"]; });
    items.erase(items.begin(), found == items.end() ? found : found + 1);
  }
  const bool has_more = items.size() > static_cast<size_t>(*limit);
  if (has_more) items.resize(static_cast<size_t>(*limit));
  Json out = {{"object", "list"}, {"data", Json::array()}};
  if (!items.empty()) out.update({{"first_id", items.front()["id"]}, {"last_id", items.back()["id"]}});
  out["has_more"] = has_more;
  out["data"] = Json(std::move(items));
  reply_json(exchange, out);
}

}  // namespace doppler::server
