// Offers pieces to other machines. `share` does only this; `pull --share` and `serve --share` do it beside other work.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/args.h"
#include "store/http_listener.h"
#include "swarm/nearby.h"
#include "swarm/share.h"

namespace doppler::cli {

// The flags --limit, --hidden and the like.
struct SharingOptions {
  store::ListenOptions listen{.port = 8019, .most_connections = 64};
  bool is_hidden = false;  // not announced on the local network

  // Takes "HOST:PORT" or "HOST". Error: the text is neither.
  Result<void> set_address(const std::string& address);
};

struct SharedModel {
  std::string name, link;
  uint64_t bytes = 0;
};
// Adds the stored models of these names. Reads each once, and shows progress on a terminal.
Result<std::vector<SharedModel>> share_stored(swarm::Share& share, const std::vector<std::string>& names);

// Null: the machine is hidden, or it cannot be announced, which a line of warning says.
std::unique_ptr<swarm::Announcer> announce(const SharingOptions& options, const swarm::Share& share,
                                           uint16_t port);

// "192.168.1.20:8019", as --peer takes it.
std::string address_of(const store::HttpListener& listener);

// Serves on a thread of its own until it is destroyed.
class Sharing {
 public:
  static Result<std::unique_ptr<Sharing>> open(SharingOptions options);
  ~Sharing();

  swarm::Share& share() { return share_; }
  std::string address() const { return address_of(*listener_); }

 private:
  Sharing() = default;
  swarm::Share share_;
  std::atomic<bool> ends_ = false;
  std::unique_ptr<store::HttpListener> listener_;
  std::unique_ptr<swarm::Announcer> announcer_;
  std::thread server_;
};

}  // namespace doppler::cli
