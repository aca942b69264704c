// The part of `doppler pull` that asks other machines: its flags, the fetch, the server of --share, the report.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/args.h"
#include "store/pull.h"
#include "swarm/fetch.h"

namespace doppler::cli {

class PullPeers {
 public:
  void add_flags(Args& args);
  // After the flags were read. Error: an address that is none, or that cannot be listened at.
  Result<void> open(const std::string& source, uint32_t stall_seconds, const std::atomic<bool>* stop,
                    std::function<void(const std::string&)> on_notice);
  ~PullPeers();

  // As store::pull(), with the peers asked first. A source "swarm:..." comes from them only.
  Result<store::Pulled> pull(const std::string& source, const store::ModelStore& models,
                             store::PullOptions options);
  // Empty: no peers were named.
  std::vector<swarm::PeerReport> report() const;

 private:
  std::vector<std::string> addresses_;
  std::string share_at_;
  bool in_order_ = false;
  std::unique_ptr<swarm::Fetcher> fetcher_;
  swarm::Share share_;
  std::atomic<bool> ends_ = false;
  std::unique_ptr<store::HttpListener> listener_;
  std::thread server_;
};

}  // namespace doppler::cli
