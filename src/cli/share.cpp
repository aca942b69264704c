// doppler share: offers stored models to other machines, piece by piece (swarm/share.h).
#include "swarm/share.h"

#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/transfer_line.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

struct Shared {
  std::string name, link;
  uint64_t bytes = 0;
};

std::string cache_folder() {
  const std::string cache = user_cache_dir();
  return cache.empty() ? cache : cache + "/trees";
}

void print_report(const store::HttpListener& listener, const std::vector<Shared>& shared, bool json) {
  if (json) {
    Json models = Json::array();
    for (const Shared& model : shared) {
      models.push_back({{"name", model.name}, {"link", model.link}, {"bytes", model.bytes}});
    }
    const Json out = {{"url", listener.url()}, {"port", listener.port()}, {"models", std::move(models)}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    std::string address = listener.url();
    address = address.substr(7, address.size() - 8);  // without "http://" and the last slash
    for (const Shared& model : shared) {
      std::printf("%s, %s: doppler pull %s --peer %s\n", model.name.c_str(),
                  format_bytes(model.bytes).c_str(), model.link.c_str(), address.c_str());
    }
    std::printf("Ctrl-C ends it\n");
  }
  std::fflush(stdout);
}

}  // namespace

int share_verb(std::span<const std::string> arguments) {
  constexpr uint32_t kConnections = 64;
  store::ListenOptions options{.most_connections = kConnections};
  uint32_t port = swarm::kUsualPort;
  bool json = false;
  std::vector<std::string> names;
  Args args(
      "doppler share [flags] NAME...",
      "Offers stored models to other machines until Ctrl-C. Each piece is proved to whoever fetches it. Only "
      "the named models are offered, and only to those who know their link or hashes.");
  args.words("NAME", &names);
  args.text("host", 0, "ADDRESS", "address to listen at (default 127.0.0.1: this machine alone)",
            &options.host);
  args.count("port", 'p', "PORT", "port (default 8019; 0: any free one)", &port, {.most = UINT16_MAX});
  args.bytes("limit", 0, "BYTES", "upload at most so much a second, such as 2M (default: no limit)",
             &options.upload_bytes_per_second);
  args.count("connections", 0, "N", "at most so many at once (default 64)", &options.most_connections,
             {.least = 1});
  args.count("timeout", 0, "SECONDS",
             "until a connection without a whole request, or that takes nothing, is closed (default 30)",
             &options.timeout_seconds, {.least = 1});
  args.flag("json", 0, "print one JSON object when it listens", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (names.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "The names of the models to share are needed; doppler list "
                            "prints those of the store."));
  }
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());
  swarm::Share share;
  std::vector<Shared> shared;
  TransferLine line;
  for (const std::string& name : names) {
    const auto model = models->find(name);
    if (!model) return exit_failed(model.error());
    const auto identity = swarm::share_model(
        share, *model, cache_folder(),
        [&](const swarm::ShareProgress& p) { line.show("hashing " + p.file, p.done, p.total); });
    line.clear();
    if (!identity) return exit_failed(identity.error());
    shared.push_back({.name = name, .link = swarm::link_of(*identity), .bytes = model->record.bytes()});
  }
  options.port = static_cast<uint16_t>(port);
  auto listener = store::HttpListener::open(
      std::move(options), [&share](const store::RequestHead& head) { return share.answer(head); });
  if (!listener) return exit_failed(listener.error());
  print_report(**listener, shared, json);
  if (auto served = (*listener)->run(); !served) return exit_failed(served.error());
  return 0;
}

}  // namespace doppler::cli
