// The part of `doppler pull` that asks other machines: its flags, the fetch, the offers meanwhile and the report.
// `doppler run` with a link uses it too.
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
  // Call this after the flags were read. Errors: a text is no address, or this machine cannot listen at it.
  Result<void> open(const std::string& source, uint32_t stall_seconds, const std::atomic<bool>* stop,
                    std::function<void(const std::string&)> on_notice);

  // Works like store::pull(), but asks the peers first. A source "swarm:..." comes only from peers.
  Result<store::Pulled> pull(const std::string& source, const store::ModelStore& models,
                             store::PullOptions options);
  // Empty: the user named no peers and looked for none.
  std::vector<swarm::PeerReport> report() const;
  // The rates of the sources for the progress line.
  std::string rates_text();
  // With --share this waits until the others have all files too. It waits at most a bit longer than the pull took.
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
