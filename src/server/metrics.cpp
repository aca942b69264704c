#include "server/metrics.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::server {
namespace {

// vLLM's bounds, in seconds.
constexpr double kTtft[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25,
                            0.5,   0.75,  1,    2.5,  5,    7.5,  10,   20,  40};
constexpr double kBetween[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                               0.15,  0.2,    0.3,   0.4,  0.5,   1,    2.5};
constexpr double kWhole[] = {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A label's value: quotes, backslashes and line feeds are escaped.
std::string label(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

double used_part(uint32_t free, uint32_t all) { return all == 0 ? 0 : 1 - static_cast<double>(free) / all; }

class Page {
 public:
  void head(const char* name, const char* type, const char* help) {
    name_ = name;
    out_ += format_text("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
  }
  void value(const std::string& labels, double value) {
    out_ += name_ + (labels.empty() ? "" : "{" + labels + "}") + format_text(" %.17g\n", value);
  }
  void part(const char* suffix, const std::string& labels, double value) {
    out_ += name_ + suffix + "{" + labels + "}" + format_text(" %.17g\n", value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string name_, out_;
};

}  // namespace

void Metrics::Histogram::add(std::span<const double> bounds, double value) {
  counts.resize(bounds.size() + 1);
  ++counts[static_cast<size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin())];
  sum += value;
}

void Metrics::count(const Exchange& exchange) {
  const GenerationFacts facts = exchange.facts();
  const std::lock_guard lock(mutex_);
  ++statuses_[exchange.status()];
  if (facts.model.empty()) return;
  OfModel& of = models_[facts.model];
  of.prompt_tokens += facts.prompt_tokens;
  of.cached_tokens += facts.cached_tokens;
  of.generated_tokens += facts.generated_tokens;
  of.forced_tokens += facts.forced_tokens;
  of.preemptions += facts.preemptions;
  ++of.finished[facts.finish];
  if (facts.drafted_tokens != 0) {
    of.drafted[std::string(facts.drafter)] += facts.drafted_tokens;
    of.accepted[std::string(facts.drafter)] += facts.accepted_tokens;
  }
  if (facts.generated_tokens == 0) return;
  of.ttft.add(kTtft, facts.ttft_seconds);
  of.queued.add(kWhole, facts.queued_seconds);
  of.whole.add(kWhole, seconds_since(exchange.begun()));
  if (facts.generated_tokens > 1)
    of.between_tokens.add(kBetween, facts.decode_seconds / (facts.generated_tokens - 1));
}

std::string Metrics::text(const Models& models, size_t connections, std::span<const Counter> others) const {
  Page page;
  const auto of_hosts = [&](const char* name, const char* help, auto value) {
    page.head(name, "gauge", help);
    for (const auto& host : models.all()) {
      page.value("model_name=\"" + label(host->source().name) + "\"", value(*host));
    }
  };
  std::map<const ModelHost*, SchedulerLoad> loads;
  for (const auto& host : models.all()) loads[host.get()] = host->load_now();
  of_hosts("vllm:num_requests_running", "Sequences that are evaluated.",
           [&](const ModelHost& host) { return static_cast<double>(loads[&host].running); });
  of_hosts("vllm:num_requests_waiting", "Sequences that wait for a place.",
           [&](const ModelHost& host) { return static_cast<double>(loads[&host].waiting); });
  // The second name is what releases of vLLM before 2025 called it; routers still read it.
  for (const char* name : {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}) {
    of_hosts(name, "Part of the cache's blocks in use, 0 to 1.",
             [&](const ModelHost& host) { return used_part(loads[&host].free_blocks, loads[&host].blocks); });
  }
  page.head("vllm:cache_config_info", "gauge",
            "Tokens of a block of the cache, and how many blocks there are.");
  for (const auto& host : models.all()) {
    const SchedulerLoad& load = loads[host.get()];
    page.value("model_name=\"" + label(host->source().name) +
                   format_text("\",block_size=\"%u\",num_gpu_blocks=\"%u\"", load.block_len, load.blocks),
               1);
  }
  const auto of_devices = [&](const char* name, const char* help, auto value) {
    page.head(name, "gauge", help);
    for (const auto& host : models.all()) {
      const std::vector<DeviceLoad>& devices = loads[host.get()].devices;
      for (size_t i = 0; i < devices.size(); ++i) {
        page.value("model_name=\"" + label(host->source().name) +
                       format_text("\",device=\"%zu\",adapter=\"", i) + label(devices[i].name) + "\"",
                   value(devices[i]));
      }
    }
  };
  of_devices("doppler:device_requests_running", "Sequences that a device evaluates.",
             [](const DeviceLoad& device) { return static_cast<double>(device.running); });
  of_devices("doppler:device_cache_usage_perc", "Part of a device's cache in use, 0 to 1.",
             [](const DeviceLoad& device) { return used_part(device.free_blocks, device.blocks); });
  of_devices("doppler:device_lost", "1: the device failed, and the others answer its requests.",
             [](const DeviceLoad& device) { return device.is_lost ? 1.0 : 0.0; });
  of_hosts("doppler:model_ready", "1: the model is loaded.",
           [](const ModelHost& host) { return host.state() == ModelState::kReady ? 1.0 : 0.0; });
  of_hosts("doppler:gpu_objects_created", "Objects of the GPU made since the model was loaded: stays 0.",
           [&](const ModelHost& host) { return static_cast<double>(loads[&host].objects_created); });
  page.head("doppler:connections", "gauge", "Connections that are open.");
  page.value("", static_cast<double>(connections));
  for (const Counter& other : others) {
    page.head(other.name, "counter", other.help);
    page.value("", static_cast<double>(other.value()));
  }

  const std::lock_guard lock(mutex_);
  page.head("doppler:http_requests_total", "counter", "Requests answered, by status; 0: the client left.");
  for (const auto& [status, count] : statuses_) {
    page.value(format_text("status=\"%d\"", status), static_cast<double>(count));
  }
  const auto counters = [&](const char* name, const char* help, uint64_t OfModel::* value) {
    page.head(name, "counter", help);
    for (const auto& [model, of] : models_) {
      page.value("model_name=\"" + label(model) + "\"", static_cast<double>(of.*value));
    }
  };
  counters("vllm:prompt_tokens_total", "Tokens of prompts.", &OfModel::prompt_tokens);
  counters("vllm:generation_tokens_total", "Tokens generated.", &OfModel::generated_tokens);
  counters("doppler:forced_tokens_total",
           "Generated tokens that were appended without a step each: grammars left no other.",
           &OfModel::forced_tokens);
  counters("vllm:num_preemptions_total",
           "Times that finished requests gave their place or blocks to another.", &OfModel::preemptions);
  counters("vllm:prefix_cache_queries_total", "Tokens looked for in the prefix cache.",
           &OfModel::prompt_tokens);
  counters("vllm:prefix_cache_hits_total", "Tokens found there.", &OfModel::cached_tokens);
  const auto by_drafter = [&](const char* name, const char* help,
                              std::map<std::string, uint64_t> OfModel::* counts) {
    page.head(name, "counter", help);
    for (const auto& [model, of] : models_) {
      for (const auto& [drafter, count] : of.*counts) {
        page.value("model_name=\"" + label(model) + "\",drafter=\"" + drafter + "\"",
                   static_cast<double>(count));
      }
    }
  };
  by_drafter("vllm:spec_decode_num_draft_tokens_total", "Tokens guessed, by who guessed them.",
             &OfModel::drafted);
  by_drafter("vllm:spec_decode_num_accepted_tokens_total", "Of these, right.", &OfModel::accepted);
  page.head("vllm:request_success_total", "counter", "Requests that ended, by reason.");
  for (const auto& [model, of] : models_) {
    for (const auto& [reason, count] : of.finished) {
      page.value("model_name=\"" + label(model) + "\",finished_reason=\"" + reason + "\"",
                 static_cast<double>(count));
    }
  }
  const auto histograms = [&](const char* name, const char* help, std::span<const double> bounds,
                              Histogram OfModel::* histogram) {
    page.head(name, "histogram", help);
    for (const auto& [model, of] : models_) {
      const Histogram& from = of.*histogram;
      const std::string of_model = "model_name=\"" + label(model) + "\"";
      uint64_t sum = 0;
      for (size_t i = 0; i < from.counts.size(); ++i) {
        sum += from.counts[i];
        const std::string bound = i < bounds.size() ? format_text("%g", bounds[i]) : "+Inf";
        page.part("_bucket", of_model + ",le=\"" + bound + "\"", static_cast<double>(sum));
      }
      page.part("_sum", of_model, from.sum);
      page.part("_count", of_model, static_cast<double>(sum));
    }
  };
  histograms("vllm:time_to_first_token_seconds", "From the request to its first token.", kTtft,
             &OfModel::ttft);
  histograms("vllm:inter_token_latency_seconds", "Mean time between the tokens of a request.", kBetween,
             &OfModel::between_tokens);
  histograms("vllm:request_queue_time_seconds", "From the request to its place.", kWhole, &OfModel::queued);
  histograms("vllm:e2e_request_latency_seconds", "From the request to its end.", kWhole, &OfModel::whole);
  return page.take();
}

}  // namespace doppler::server
