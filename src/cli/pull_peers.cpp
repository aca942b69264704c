#include "cli/pull_peers.h"

#include "base/log.h"
#include "base/text.h"

namespace doppler::cli {

void PullPeers::add_peer_flag(Args& args) {
  args.texts("peer", 0, "ADDRESS", "ask this machine first (HOST, HOST:PORT); may be repeated", &addresses_);
}

void PullPeers::add_flags(Args& args) {
  args.group("From other machines");
  add_peer_flag(args);
  args.flag("nearby", 0, "ask the machines of this network that share, as a swarm: link without --peer does",
            &is_nearby_);
  args.name("from", 0, "SOURCE",
            "with a swarm: link, an address or repository that has the same files, for what no machine has",
            &from_);
  args.flag("in-order", 0, "of peers, fetch the first piece first instead of the rarest", &in_order_);
  args.name("share", 0, "ADDRESS",
            "with a swarm: link, offer what has arrived to others at HOST:PORT until they have all too",
            &share_at_);
  args.bytes("limit", 0, "BYTES", "with --share, upload at most so much a second, such as 2M",
             &sharing_options_.listen.upload_bytes_per_second);
  args.flag("hidden", 0, "with --share, do not announce this machine on its network",
            &sharing_options_.is_hidden);
}

Result<void> PullPeers::check(const std::string& source) const {
  constexpr size_t kMostPeers = 64;
  const bool is_link = source.starts_with(swarm::kLinkStart);
  if (is_link && !swarm::parse_link(source)) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no link; it is swarm: and 64 digits 0-9 a-f.",
                printable(source).c_str());
  }
  if (addresses_.size() > kMostPeers) {
    return fail(ErrorKind::kInvalidInput, "%zu peers were named; at most %zu are asked.", addresses_.size(),
                kMostPeers);
  }
  if (in_order_ && addresses_.empty() && !is_nearby_ && !is_link) {
    return fail(ErrorKind::kInvalidInput, "Flag --in-order needs --peer or --nearby.");
  }
  if (!is_link && !(share_at_.empty() && from_.empty())) {
    return fail(ErrorKind::kInvalidInput,
                "Flags --share and --from need a source swarm:..., whose pieces are proved one by one.");
  }
  if (share_at_.empty() &&
      (sharing_options_.is_hidden || sharing_options_.listen.upload_bytes_per_second != 0)) {
    return fail(ErrorKind::kInvalidInput, "Flags --limit and --hidden need --share.");
  }
  return {};
}

Result<void> PullPeers::open(const std::string& source, uint32_t stall_seconds, const std::atomic<bool>* stop,
                             std::function<void(const std::string&)> on_notice) {
  DP_CHECK(check(source));
  const bool is_link = source.starts_with(swarm::kLinkStart);
  if (addresses_.empty() && !is_nearby_ && !is_link) return {};
  if (!share_at_.empty()) {
    DP_CHECK(sharing_options_.set_address(share_at_));
    DP_TRY(sharing_, Sharing::open(sharing_options_));
  }
  swarm::FetchOptions options{.in_order = in_order_,
                              .stall_seconds = stall_seconds,
                              .share = sharing_ ? &sharing_->share() : nullptr,
                              .stop = stop,
                              .on_notice = std::move(on_notice)};
  for (const std::string& address : addresses_) {
    DP_TRY(std::string url, swarm::peer_url(address));
    options.peers.push_back(std::move(url));
  }
  if (is_nearby_ || (is_link && addresses_.empty())) {
    DP_TRY(finder_, swarm::Finder::open(sharing_ ? sharing_->share().number() : 0));
    options.new_peers = [this] {
      std::vector<std::string> urls;
      for (const std::string& address : finder_->take()) urls.push_back("http://" + address);
      return urls;
    };
  }
  fetcher_ = std::make_unique<swarm::Fetcher>(std::move(options));
  return {};
}

Result<store::Pulled> PullPeers::pull(const std::string& source, const store::ModelStore& models,
                                      store::PullOptions options) {
  options.peers = fetcher_.get();
  const auto identity = swarm::parse_link(source);
  if (!identity) return store::pull(source, models, options);
  DP_TRY(store::DownloadList list, fetcher_->list(*identity, options.list.name));
  store::Web web(options.web);
  if (!from_.empty()) DP_CHECK(add_source(list, models, options, web));
  return store::pull_listed(list, models, options, web);
}

// The link says what the files are. So a source that fails or has other files is worth only a notice.
Result<void> PullPeers::add_source(store::DownloadList& list, const store::ModelStore& models,
                                   const store::PullOptions& options, store::Web& web) const {
  const auto found = store::list_downloads(from_, options.list, models, web);
  if (!found && found.error().kind() == ErrorKind::kCancelled) return forward(found.error());
  size_t count = 0;
  for (store::ListedFile& file : list.files) {
    if (!found) break;
    for (const store::ListedFile& other : found->files) {
      const bool is_only = list.files.size() == 1 && found->files.size() == 1;
      const bool is_same = other.sha256 ? other.sha256 == file.sha256 : is_only || other.file == file.file;
      if (found->is_local || !is_same) continue;
      file.from = other.from;
      ++count;
      break;
    }
  }
  if (count == list.files.size() || !options.on_notice) return {};
  options.on_notice(found ? format_text("%s has %zu of the model's %zu files.", printable(from_).c_str(),
                                        count, list.files.size())
                          : found.error().sentence());
  return {};
}

void PullPeers::wait_for_others(double pull_seconds) {
  constexpr int kLeastSeconds = 10;
  if (!fetcher_ || !sharing_) return;
  const std::chrono::seconds most(static_cast<int64_t>(pull_seconds) + kLeastSeconds);
  // The model is there, however the wait ends.
  if (auto waited = fetcher_->wait_for_others(most); !waited)
    log(LogLevel::kInfo, "%s", waited.error().sentence().c_str());
}

std::string PullPeers::rates_text() {
  if (!fetcher_) return {};
  size_t peers = 0;
  uint64_t from_peers = 0, from_source = 0;
  for (const swarm::PeerReport& peer : fetcher_->report()) {
    if (peer.is_source) {
      from_source += peer.bytes_per_second;
    } else if (peer.bytes_per_second > 0) {
      ++peers;
      from_peers += peer.bytes_per_second;
    }
  }
  std::string text;
  if (peers > 0) {
    text = format_text(" from %zu %s at %s/s", peers, peers == 1 ? "machine" : "machines",
                       format_bytes(from_peers).c_str());
  }
  if (from_source > 0) {
    text +=
        (text.empty() ? " from" : " and") + std::string(" the source at ") + format_bytes(from_source) + "/s";
  }
  return text;
}

std::vector<swarm::PeerReport> PullPeers::report() const {
  return fetcher_ ? fetcher_->report() : std::vector<swarm::PeerReport>();
}

}  // namespace doppler::cli
