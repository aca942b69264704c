// doppler share: offers stored models to other machines, piece by piece (swarm/share.h).
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/sharing.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

void print_report(const store::HttpListener& listener, const std::vector<SharedModel>& shared, bool json) {
  if (json) {
    Json models = Json::array();
    for (const SharedModel& model : shared) {
      models.push_back({{"name", model.name}, {"link", model.link}, {"bytes", model.bytes}});
    }
    const Json out = {{"url", listener.url()}, {"port", listener.port()}, {"models", std::move(models)}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    for (const SharedModel& model : shared) {
      std::printf("%s, %s: doppler pull %s --peer %s\n", model.name.c_str(),
                  format_bytes(model.bytes).c_str(), model.link.c_str(), address_of(listener).c_str());
    }
    std::printf("Ctrl-C ends it\n");
  }
  std::fflush(stdout);
}

void print_end(uint64_t bytes_sent, bool json) {
  if (json) {
    std::printf("%s\n", to_text(Json{{"bytes_sent", bytes_sent}}).c_str());
  } else {
    std::printf("others asked for %s\n", format_bytes(bytes_sent).c_str());
  }
}

}  // namespace

int share_verb(std::span<const std::string> arguments) {
  SharingOptions options;
  store::ListenOptions& listen = options.listen;
  uint32_t port = swarm::kUsualPort;
  bool json = false;
  std::vector<std::string> names;
  Args args(
      "doppler share [flags] NAME...",
      "Offers stored models to other machines until Ctrl-C. Each piece is proved to whoever fetches it. Only "
      "the named models are offered, and only to those who know their link or hashes.");
  args.words("NAME", &names);
  args.text("host", 0, "ADDRESS", "address to listen at (default 127.0.0.1: this machine alone)",
            &listen.host);
  args.count("port", 'p', "PORT", "port (default 8019; 0: any free one)", &port, {.most = UINT16_MAX});
  args.flag("hidden", 0,
            "do not announce this machine on its network, so that others must be told its address",
            &options.is_hidden);
  args.bytes("limit", 0, "BYTES", "upload at most so much a second, such as 2M (default: no limit)",
             &listen.upload_bytes_per_second);
  args.count("connections", 0, "N", "at most so many at once (default 64)", &listen.most_connections,
             {.least = 1});
  args.count("timeout", 0, "SECONDS",
             "until a connection without a whole request, or that takes nothing, is closed (default 30)",
             &listen.timeout_seconds, {.least = 1});
  args.flag("json", 0, "print one JSON object when it listens, and one at the end", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (names.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "The names of the models to share are needed; doppler list "
                            "prints those of the store."));
  }
  swarm::Share share;
  const auto shared = share_stored(share, names);
  if (!shared) return exit_failed(shared.error());
  listen.port = static_cast<uint16_t>(port);
  auto listener = store::HttpListener::open(
      listen, [&share](const store::RequestHead& head) { return share.answer(head); });
  if (!listener) return exit_failed(listener.error());
  const auto announcer = announce(options, share, (*listener)->port());
  print_report(**listener, *shared, json);
  if (auto served = (*listener)->run(); !served) return exit_failed(served.error());
  print_end(share.bytes_sent(), json);
  return 0;
}

}  // namespace doppler::cli
