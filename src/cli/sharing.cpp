#include "cli/sharing.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/common.h"
#include "cli/transfer_line.h"
#include "store/http_headers.h"
#include "store/url.h"

namespace doppler::cli {

Result<void> SharingOptions::set_address(const std::string& address) {
  DP_TRY(const std::string url, swarm::peer_url(address));
  DP_TRY(const store::Url parsed, store::parse_url(url));
  const size_t colon = parsed.host.rfind(':');
  listen.host = parsed.host.substr(0, colon);
  if (listen.host.starts_with('[')) listen.host = listen.host.substr(1, listen.host.size() - 2);
  listen.port = static_cast<uint16_t>(*store::parse_decimal(parsed.host.substr(colon + 1)));
  return {};
}

Result<std::vector<SharedModel>> share_stored(swarm::Share& share, const std::vector<std::string>& names) {
  DP_TRY(const store::ModelStore models, store::ModelStore::open());
  const std::string cache = user_cache_dir();
  std::vector<SharedModel> out;
  TransferLine line;
  for (const std::string& name : names) {
    DP_TRY(const store::StoredModel model, models.find(name));
    DP_TRY(const Sha256 identity, swarm::share_model(share, model, cache.empty() ? cache : cache + "/trees",
                                                     [&](const swarm::ShareProgress& p) {
                                                       line.show("hashing " + p.file, p.done, p.total);
                                                     }));
    line.clear();
    out.push_back({.name = name, .link = swarm::link_of(identity), .bytes = model.record.bytes()});
  }
  return out;
}

std::unique_ptr<swarm::Announcer> announce(const SharingOptions& options, const swarm::Share& share,
                                           uint16_t port) {
  if (options.is_hidden) return nullptr;
  auto announcer = swarm::Announcer::open(options.listen.host, port, share.number());
  if (announcer) return std::move(*announcer);
  log(LogLevel::kWarning, "Others do not find this machine by themselves: %s",
      announcer.error().sentence().c_str());
  return nullptr;
}

std::string address_of(const store::HttpListener& listener) {
  const std::string url = listener.url();
  return url.substr(7, url.size() - 8);  // without "http://" and the last slash
}

Result<std::unique_ptr<Sharing>> Sharing::open(SharingOptions options) {
  std::unique_ptr<Sharing> out(new Sharing);
  Sharing* self = out.get();
  options.listen.stop = &out->ends_;
  DP_TRY(out->listener_, store::HttpListener::open(options.listen, [self](const store::RequestHead& head) {
           return self->share_.answer(head);
         }));
  out->announcer_ = announce(options, out->share_, out->listener_->port());
  out->server_ = std::thread([self] {
    if (auto served = self->listener_->run(); !served)
      log(LogLevel::kWarning, "%s", served.error().sentence().c_str());
  });
  return out;
}

Sharing::~Sharing() {
  ends_ = true;
  if (server_.joinable()) server_.join();
}

}  // namespace doppler::cli
