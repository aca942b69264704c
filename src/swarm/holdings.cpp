#include "swarm/holdings.h"

#include <algorithm>
#include <list>
#include <numeric>

#include "store/retry.h"
#include "swarm/peer_answer.h"
#include "swarm/tree.h"

namespace doppler::swarm {
namespace {

constexpr uint32_t kHoldingsPollMs = 50;
constexpr size_t kHoldingsMostRunning = 32;

struct Question : PeerAnswer {
  Question(Holding& of, size_t which, uint64_t bytes)
      : PeerAnswer(most_offer_bytes(bytes), std::nullopt, 0), holding(of), file(which) {}
  Holding& holding;
  size_t file;
};

uint64_t bytes_of(const Offer& offer) {
  if (offer.pieces.has_all()) return offer.bytes;
  uint64_t sum = 0;
  for (uint64_t piece = 0; piece < offer.pieces.count(); ++piece)
    sum += offer.pieces.has(piece) ? piece_size(offer.bytes, piece) : 0;
  return sum;
}

void take_answer(const store::Ended& ended, const std::vector<AskedFile>& files) {
  const auto& question = *static_cast<Question*>(ended.receiver);
  if (ended.failure) {
    question.holding.problem = ended.failure->error;
  } else if (question.has_content()) {
    auto offer = parse_offer(question.text(), files[question.file].bytes);
    if (!offer) {
      question.holding.problem = std::move(offer).error();
    } else {
      question.holding.held_bytes[question.file] = bytes_of(*offer);
    }
  }
}

}  // namespace

uint64_t Holding::sum() const { return std::accumulate(held_bytes.begin(), held_bytes.end(), uint64_t{0}); }

Result<std::vector<Holding>> ask_holdings(const std::vector<std::string>& peers,
                                          const std::vector<AskedFile>& files, uint32_t stall_seconds,
                                          const std::atomic<bool>* stop) {
  DP_TRY(const auto client,
         store::HttpClient::open({.connect_seconds = stall_seconds, .stall_seconds = stall_seconds}));
  std::vector<Holding> holdings;
  for (const std::string& peer : peers) {
    holdings.push_back({.peer = peer, .held_bytes = std::vector<uint64_t>(files.size()), .problem = {}});
  }
  std::list<Question> questions;
  size_t next = 0;
  const size_t count = peers.size() * files.size();
  while (next < count || client->running() > 0) {
    DP_CHECK(store::check_not_stopped(stop));
    for (; next < count && client->running() < kHoldingsMostRunning; ++next) {
      const size_t file = next % files.size();
      Holding& holding = holdings[next / files.size()];
      if (holding.problem) continue;
      Question& question = questions.emplace_back(holding, file, files[file].bytes);
      const SwarmPath path{.kind = SwarmPath::Kind::kOffer, .key = key_of_file(files[file].sha256)};
      DP_CHECK(client->start({.url = holding.peer + path_text(path),
                              .range = {},
                              .if_range = {},
                              .bearer = {},
                              .is_direct = true},
                             question));
    }
    DP_TRY(const std::vector<store::Ended> ended, client->wait(kHoldingsPollMs));
    for (const store::Ended& one : ended) take_answer(one, files);
  }
  return holdings;
}

}  // namespace doppler::swarm
