// OpenAI's batches.
#include "base/text.h"
#include "server/apis/listing.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

void reply_no_batch(Exchange& exchange, const std::string& id) {
  reply_error(exchange, 404, "Batch \"" + printable(id) + "\" is not known here.", "invalid_request_error");
}

}  // namespace

void answer_create_batch(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto batch = service.batches().create(*body);
  if (batch) return reply_json(*call.exchange, *batch);
  if (batch.error().kind() != ErrorKind::kOutOfMemory) return reply_error(*call.exchange, batch.error());
  reply_error(*call.exchange, 413, batch.error().sentence(), "invalid_request_error");
}

void answer_batches(Service& service, const Call& call) {
  reply_listing(*call.exchange, service.batches().list());
}

void answer_batch(Service& service, const Call& call) {
  if (const auto batch = service.batches().get(call.rest)) return reply_json(*call.exchange, *batch);
  reply_no_batch(*call.exchange, call.rest);
}

// POST /v1/batches/ID/cancel
void answer_cancel_batch(Service& service, const Call& call) {
  constexpr std::string_view kCancel = "/cancel";
  const std::string id =
      call.rest.ends_with(kCancel) ? call.rest.substr(0, call.rest.size() - kCancel.size()) : "";
  if (const auto batch = service.batches().cancel(id)) return reply_json(*call.exchange, *batch);
  reply_no_batch(*call.exchange, id);
}

}  // namespace doppler::server
