// The part of `doppler pull` that asks other machines: its flags, the fetch, what it offers meanwhile, the report. Also
// for `doppler run` with a link.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/sharing.h"
#include "store/pull.h"
#include "swarm/fetch.h"

namespace doppler::cli {

class PullPeers {
 public:
  void add_peer_flag(Args& args);
  void add_flags(Args& args);  // that one and the others
  // After the flags were read. Error: an address that is none, or that cannot be listened at.
  Result<void> open(const std::string& source, uint32_t stall_seconds, const std::atomic<bool>* stop,
                    std::function<void(const std::string&)> on_notice);

  // As store::pull(), with the peers asked first. A source "swarm:..." comes from them only.
  Result<store::Pulled> pull(const std::string& source, const store::ModelStore& models,
                             store::PullOptions options);
  // Empty: no peers were named or looked for.
  std::vector<swarm::PeerReport> report() const;
  // For the progress line: where the bytes come from now.
  std::string rates_text();
  // With --share: until the others have all too, at most as long as the pull took and a bit.
  void wait_for_others(double pull_seconds);

 private:
  Result<void> check(const std::string& source) const;
  Result<void> add_source(store::DownloadList& list, const store::ModelStore& models,
                          const store::PullOptions& options, store::Web& web) const;

  std::vector<std::string> addresses_;
  std::string share_at_, from_;
  bool in_order_ = false, is_nearby_ = false;
  SharingOptions sharing_options_;
  std::unique_ptr<Sharing> sharing_;
  std::unique_ptr<swarm::Finder> finder_;
  std::unique_ptr<swarm::Fetcher> fetcher_;
};

}  // namespace doppler::cli
