#include "cli/link.h"

#include <cstdio>

#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/transfer_line.h"

namespace doppler::cli {

bool is_link(const std::string& model) { return model.starts_with(swarm::kLinkStart); }

Result<std::string> path_of_link(const std::string& link) {
  if (!swarm::parse_link(link)) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no link; it is swarm: and 64 digits 0-9 a-f.",
                printable(link).c_str());
  }
  DP_TRY(const store::ModelStore models, store::ModelStore::open());
  for (const store::StoredModel& model : models.list().models) {
    if (model.record.source == link) return model.load_path();
  }
  return std::string();
}

Result<void> pull_link(const std::string& link, PullPeers& peers, bool is_quiet) {
  DP_TRY(const std::string path, path_of_link(link));
  if (!path.empty()) return {};
  DP_TRY(const store::ModelStore models, store::ModelStore::open());
  const InterruptFlag interrupt;
  TransferLine line;
  store::PullOptions options;
  options.web.stop = interrupt.flag();
  options.on_notice = [&](const std::string& text) {
    line.clear();
    std::fprintf(stderr, "doppler: %s\n", text.c_str());
  };
  if (!is_quiet) {
    options.on_progress = [&](const store::PullProgress& p) {
      line.show("pulling " + p.name + peers.rates_text(), p.done, p.total);
    };
  }
  DP_CHECK(peers.open(link, options.web.times.stall_seconds, options.web.stop, options.on_notice));
  DP_TRY([[maybe_unused]] const store::Pulled pulled, peers.pull(link, models, options));
  return {};
}

}  // namespace doppler::cli
