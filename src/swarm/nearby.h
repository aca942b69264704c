// Machines of the local network that share, by multicast DNS: it announces this one and finds the others. It trusts a
// found address as little as one that is typed in.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/multicast.h"
#include "swarm/mdns_message.h"

namespace doppler::swarm {

// Answers questions for `_doppler._tcp` on its own thread, until it is destroyed.
class Announcer {
 public:
  // host: where the listener listens (ListenOptions). Error: no interface with IPv4 has it, or the port of multicast
  // DNS cannot be shared.
  static Result<std::unique_ptr<Announcer>> open(const std::string& host, uint16_t port, uint64_t number);
  ~Announcer();

 private:
  Announcer(MulticastSocket socket, std::vector<NetworkInterface> interfaces, const MdnsService& self);
  void run();
  void answer(const Datagram& question);

  MulticastSocket socket_;
  std::vector<NetworkInterface> interfaces_;
  MdnsService self_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

// Asks every few seconds on its own thread, until it is destroyed.
class Finder {
 public:
  // number: this machine's number in its own offers, which the search leaves out. 0: it has none.
  static Result<std::unique_ptr<Finder>> open(uint64_t number);
  ~Finder();

  // Gives addresses such as "192.168.1.20:8019" that it did not give before.
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
