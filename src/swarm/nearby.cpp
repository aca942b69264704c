#include "swarm/nearby.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"

namespace doppler::swarm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kNearbyPollMs = 100;  // how soon the end is noticed
constexpr auto kNearbyFirstPause = milliseconds(250),
               kLongestPause = milliseconds(4000);  // between questions, doubled
constexpr size_t kMostFound = 64;
constexpr int kMostAnswers = 20;  // a second

}  // namespace

Result<std::unique_ptr<Announcer>> Announcer::open(const std::string& host, uint16_t port, uint64_t number) {
  std::vector<NetworkInterface> interfaces = interfaces_of(host);
  if (interfaces.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "%s is no IPv4 address of this machine, so others do not find it by themselves.",
                printable(host).c_str());
  }
  DP_TRY(MulticastSocket socket, MulticastSocket::open_member(interfaces));
  return std::unique_ptr<Announcer>(
      new Announcer(std::move(socket), std::move(interfaces), {.number = number, .port = port}));
}

Announcer::Announcer(MulticastSocket socket, std::vector<NetworkInterface> interfaces,
                     const MdnsService& self)
    : socket_(std::move(socket)),
      interfaces_(std::move(interfaces)),
      self_(self),
      thread_([this] { run(); }) {}

Announcer::~Announcer() {
  ends_ = true;
  thread_.join();
}

void Announcer::run() {
  auto second = Clock::now();
  int answers = 0;
  while (!ends_) {
    const auto question = socket_.receive(kNearbyPollMs, kMostMdnsBytes);
    if (Clock::now() - second > std::chrono::seconds(1)) {
      second = Clock::now();
      answers = 0;
    }
    if (question && answers++ < kMostAnswers) answer(*question);
  }
}

void Announcer::answer(const Datagram& question) {
  constexpr uint16_t kMdnsPort = 5353;
  for (const NetworkInterface& by : interfaces_) {
    if (by.index != question.via || !by.is_near(question.from)) continue;
    MdnsService self = self_;
    self.address = by.address;
    const auto asked = parse_mdns_question(question.bytes, self);
    if (!asked || asked->knows_us) return;
    const bool is_simple = question.port != kMdnsPort;
    const std::string message = mdns_answer(self, *asked, is_simple);
    if (is_simple) {
      socket_.send_to(by, question.from, question.port, message);
    } else {
      socket_.send_to_all(by, message);
    }
    return;
  }
}

Result<std::unique_ptr<Finder>> Finder::open(uint64_t number) {
  DP_TRY(MulticastSocket socket, MulticastSocket::open_simple());
  return std::unique_ptr<Finder>(new Finder(std::move(socket), number));
}

Finder::Finder(MulticastSocket socket, uint64_t number)
    : socket_(std::move(socket)), number_(number), thread_([this] { run(); }) {}

Finder::~Finder() {
  ends_ = true;
  thread_.join();
}

void Finder::run() {
  auto next = Clock::now();
  auto pause = kNearbyFirstPause;
  while (!ends_) {
    if (Clock::now() >= next) {
      for (const NetworkInterface& by : interfaces_of("")) socket_.send_to_all(by, mdns_question());
      next = Clock::now() + pause;
      pause = std::min(kLongestPause, pause * 2);
    }
    const auto datagram = socket_.receive(kNearbyPollMs, kMostMdnsBytes);
    if (!datagram) continue;
    for (const MdnsService& service : parse_mdns_answer(datagram->bytes)) {
      if (service.number == number_) continue;
      // The sender of the answer is the peer, whatever the answer says. So it cannot send others to a third machine.
      std::string address = format_text("%s:%u", ipv4_text(datagram->from).c_str(), service.port);
      const std::lock_guard lock(mutex_);
      if (found_.size() < kMostFound && found_.insert(address).second) fresh_.push_back(std::move(address));
    }
  }
}

std::vector<std::string> Finder::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fresh_, {});
}

}  // namespace doppler::swarm
