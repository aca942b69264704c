#include "cli/pull_peers.h"

#include "base/log.h"
#include "store/http_headers.h"
#include "store/url.h"

namespace doppler::cli {

void PullPeers::add_flags(Args& args) {
  args.texts("peer", 0, "ADDRESS", "ask this machine first (HOST, HOST:PORT); may be repeated", &addresses_);
  args.name("share", 0, "ADDRESS",
            "with a swarm: link, offer what has arrived to others at HOST:PORT meanwhile", &share_at_);
  args.flag("in-order", 0, "of peers, fetch the first piece first instead of the rarest", &in_order_);
}

Result<void> PullPeers::open(const std::string& source, uint32_t stall_seconds, const std::atomic<bool>* stop,
                             std::function<void(const std::string&)> on_notice) {
  constexpr size_t kMostPeers = 64;
  const bool is_link = source.starts_with(swarm::kLinkStart);
  if (is_link && !swarm::parse_link(source)) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no link; it is swarm: and 64 digits 0-9 a-f.",
                printable(source).c_str());
  }
  if (is_link && addresses_.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "A swarm: link needs --peer, the address of a machine that has it.");
  }
  if (addresses_.size() > kMostPeers) {
    return fail(ErrorKind::kInvalidInput, "%zu peers were named; at most %zu are asked.", addresses_.size(),
                kMostPeers);
  }
  if ((!share_at_.empty() || in_order_) && addresses_.empty()) {
    return fail(ErrorKind::kInvalidInput, "Flags --share and --in-order need --peer.");
  }
  if (!share_at_.empty() && !is_link) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --share needs a source swarm:..., whose pieces are proved one by one.");
  }
  if (addresses_.empty()) return {};
  swarm::FetchOptions options{.in_order = in_order_,
                              .stall_seconds = stall_seconds,
                              .share = share_at_.empty() ? nullptr : &share_,
                              .stop = stop,
                              .on_notice = std::move(on_notice)};
  for (const std::string& address : addresses_) {
    DP_TRY(std::string url, swarm::peer_url(address));
    options.peers.push_back(std::move(url));
  }
  fetcher_ = std::make_unique<swarm::Fetcher>(std::move(options));
  if (share_at_.empty()) return {};
  DP_TRY(const std::string url, swarm::peer_url(share_at_));
  DP_TRY(const store::Url parsed, store::parse_url(url));
  const size_t colon = parsed.host.rfind(':');
  std::string host = parsed.host.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto port = store::parse_decimal(parsed.host.substr(colon + 1));
  DP_TRY(listener_,
         store::HttpListener::open(
             {.host = host, .port = static_cast<uint16_t>(*port), .most_connections = 64, .stop = &ends_},
             [this](const store::RequestHead& head) { return share_.answer(head); }));
  server_ = std::thread([this] {
    if (auto served = listener_->run(); !served)
      log(LogLevel::kWarning, "%s", served.error().sentence().c_str());
  });
  return {};
}

PullPeers::~PullPeers() {
  ends_ = true;
  if (server_.joinable()) server_.join();
}

Result<store::Pulled> PullPeers::pull(const std::string& source, const store::ModelStore& models,
                                      store::PullOptions options) {
  options.peers = fetcher_.get();
  const auto identity = swarm::parse_link(source);
  if (!identity) return store::pull(source, models, options);
  DP_TRY(const store::DownloadList list, fetcher_->list(*identity, options.list.name));
  store::Web web(options.web);
  return store::pull_listed(list, models, options, web);
}

std::vector<swarm::PeerReport> PullPeers::report() const {
  return fetcher_ ? fetcher_->report() : std::vector<swarm::PeerReport>();
}

}  // namespace doppler::cli
