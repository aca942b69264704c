// Machines of the local network that share, by multicast DNS: announcing this one, finding the others. An address
// that is found is as good as one that is typed in: it is not trusted.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "swarm/multicast.h"

namespace doppler::swarm {

// Answers who asks for `_doppler._tcp`, on a thread of its own, until it is destroyed.
class Announcer {
 public:
  // host: where the listener listens (ListenOptions). Error: no interface with IPv4 has it, or the port of multicast
  // DNS cannot be shared.
  static Result<std::unique_ptr<Announcer>> open(const std::string& host, uint16_t port, uint64_t number);
  ~Announcer();

 private:
  Announcer(MulticastSocket socket, std::vector<Interface> interfaces, const MdnsService& self);
  void run();
  void answer(const Datagram& question);

  MulticastSocket socket_;
  std::vector<Interface> interfaces_;
  MdnsService self_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

// Asks every few seconds, on a thread of its own, until it is destroyed.
class Finder {
 public:
  // number: of this machine's own offers, which is not found; 0: it has none.
  static Result<std::unique_ptr<Finder>> open(uint64_t number);
  ~Finder();

  // "192.168.1.20:8019"; those that were not taken before.
  std::vector<std::string> take();

 private:
  Finder(MulticastSocket socket, uint64_t number);
  void run();

  MulticastSocket socket_;
  uint64_t number_;
  std::mutex mutex_;  // guards the next two
  std::set<std::string> found_;
  std::vector<std::string> fresh_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace doppler::swarm
