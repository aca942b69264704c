// The server's counters, as Prometheus reads them. The names are vLLM's where they fit, so that dashboards made for it
// work.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "server/exchange.h"
#include "server/models.h"

namespace doppler::server {

class Metrics {
 public:
  struct Counter {
    const char *name, *help;
    std::function<uint64_t()> value;
  };
  // An exchange is over.
  void count(const Exchange& exchange);
  std::string text(const Models& models, size_t connections, std::span<const Counter> others) const;

 private:
  struct Histogram {
    std::vector<uint64_t> counts;  // of each bound and above the last
    double sum = 0;
    void add(std::span<const double> bounds, double value);
  };
  struct OfModel {
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, forced_tokens = 0, preemptions = 0;
    std::map<std::string, uint64_t> finished;           // by reason
    std::map<std::string, uint64_t> drafted, accepted;  // tokens, by drafter
    Histogram ttft, between_tokens, whole, queued;
  };

  mutable std::mutex mutex_;
  std::map<std::string, OfModel> models_;
  std::map<int, uint64_t> statuses_;
};

}  // namespace doppler::server
