// doppler pull: fetches a model into the store. The work is in store/pull.h; here are flags, the progress line and the
// report.
#include "store/pull.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/json.h"
#include "base/own_folders_native.h"
#include "cli/common.h"
#include "cli/pull_peers.h"
#include "cli/transfer_line.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

constexpr char kHub[] = "https://huggingface.co";

std::atomic<bool> g_stop_pull = false;

// The first signal stops the download in order, the next one ends the program.
void on_pull_signal(int number) {
  g_stop_pull = true;
  std::signal(number, SIG_DFL);
}

struct PullFlags {
  std::vector<std::string> words;
  store::PullOptions options;
  std::string endpoint;
  PullPeers peers;
  bool json = false, quiet = false;
};

std::string from_environment(const char* name, const char* otherwise) {
  const std::string value = environment_variable(name);
  return value.empty() ? otherwise : value;
}

void add_flags(Args& args, PullFlags& flags) {
  store::PullOptions& options = flags.options;
  args.words("SOURCE", &flags.words);
  args.text("name", 0, "NAME", "name in the store (default: after the source)", &options.list.name);
  args.custom("sha256", 0, "DIGEST", "the hash that a single file must have",
              [&options](std::string_view value) -> Result<void> {
                options.list.sha256 = sha256_from_hex(value);
                if (options.list.sha256) return {};
                return fail(ErrorKind::kInvalidInput,
                            "Flag --sha256 was given \"%s\"; it takes 64 digits 0-9 a-f.",
                            printable(value).c_str());
              });
  args.flag("replace", 0, "fetch again, and put it in the place of a model of that name", &options.replace);
  args.count("connections", 0, "N", "ranges fetched side by side (default 4)", &options.connections);
  args.count("retries", 0, "N", "tries in a row after a failure that may pass (default 5)",
             &options.web.retries);
  args.count("timeout", 0, "SECONDS", "without a byte, until it counts as a failure (default 30)",
             &options.web.times.stall_seconds);
  args.flag("json", 0, "print one JSON object", &flags.json);
  args.flag("quiet", 'q', "no progress", &flags.quiet);
  add_log_flag(args);
  flags.peers.add_flags(args);
}

Result<void> check(const PullFlags& flags) {
  if (flags.words.size() != 1) {
    return fail(
        ErrorKind::kInvalidInput,
        "One source is needed: an address, org/name[:file or quantisation][@revision], a swarm: link, or a "
        "path.");
  }
  constexpr uint32_t kMostConnections = 64;
  if (flags.options.connections == 0 || flags.options.connections > kMostConnections) {
    return fail(ErrorKind::kInvalidInput, "Flag --connections was given %u; allowed is 1 to %u.",
                flags.options.connections, kMostConnections);
  }
  if (flags.options.web.times.stall_seconds == 0) {
    return fail(ErrorKind::kInvalidInput, "Flag --timeout was given 0; at least 1 is needed.");
  }
  return {};
}

std::string peers_text(const std::vector<swarm::PeerReport>& peers, const store::Pulled& pulled) {
  if (peers.empty()) return "";
  std::string text = "from the source: " + format_bytes(pulled.received_bytes) + "\n";
  for (const swarm::PeerReport& peer : peers) {
    if (peer.is_source) continue;
    text += "from " + peer.address + ": " + format_bytes(peer.bytes) +
            (peer.dropped.empty() ? "" : ", dropped: " + peer.dropped) + "\n";
  }
  return text;
}

Json peers_json(const std::vector<swarm::PeerReport>& peers) {
  Json out = Json::array();
  for (const swarm::PeerReport& peer : peers) {
    if (peer.is_source) continue;
    out.push_back({{"address", peer.address}, {"bytes", peer.bytes}, {"dropped", peer.dropped}});
  }
  return out;
}

void print_report(const store::Pulled& pulled, const std::vector<swarm::PeerReport>& peers, double seconds,
                  bool json) {
  const store::StoredModel& model = pulled.model;
  if (json) {
    Json report = store::record_json(model.record);
    report["name"] = model.name;
    report["path"] = model.load_path();
    report["bytes"] = model.record.bytes();
    report["was_there"] = pulled.was_there;
    report["resumed_bytes"] = pulled.resumed_bytes;
    report["received_bytes"] = pulled.received_bytes;
    report["peer_bytes"] = pulled.peer_bytes;
    report["peers"] = peers_json(peers);
    report["seconds"] = seconds;
    std::printf("%s\n", to_text(report, 2).c_str());
    return;
  }
  if (pulled.was_there) {
    std::printf("%s is stored already: %s, %s\n", model.name.c_str(),
                format_bytes(model.record.bytes()).c_str(), model.load_path().c_str());
    return;
  }
  bool is_verified = true;
  for (const store::StoredFile& file : model.record.files) is_verified = is_verified && file.is_verified;
  const std::string resumed =
      pulled.resumed_bytes ? " (" + format_bytes(pulled.resumed_bytes) + " were there already)" : "";
  std::printf("%s: %s%s in %.1f s, %s\n%sdoppler run -m %s \"...\" uses it\n", model.name.c_str(),
              format_bytes(model.record.bytes()).c_str(), resumed.c_str(), seconds,
              is_verified ? "hashes checked" : "not checked: the source names no hash",
              peers_text(peers, pulled).c_str(), model.name.c_str());
}

}  // namespace

int pull_verb(std::span<const std::string> arguments) {
  PullFlags flags;
  Args args("doppler pull [flags] SOURCE",
            "Fetches a model into the store: from an address, a Hugging Face repository "
            "(org/name[:file or quantisation][@revision]), a swarm: link or a path. The same command goes on "
            "after an "
            "interruption.");
  add_flags(args, flags);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());

  store::PullOptions& options = flags.options;
  options.list.hub = from_environment("HF_ENDPOINT", kHub);
  while (options.list.hub.ends_with('/')) options.list.hub.pop_back();
  options.web.token = from_environment("HF_TOKEN", "");
  options.web.token_origin = options.list.hub;
  options.web.stop = &g_stop_pull;
  TransferLine line;
  options.on_notice = [&](const std::string& text) {
    line.clear();
    std::fprintf(stderr, "doppler: %s\n", text.c_str());
  };
  if (!flags.quiet) {
    options.on_progress = [&](const store::PullProgress& p) {
      line.show("pulling " + p.name + flags.peers.rates_text(), p.done, p.total);
    };
  }
  if (auto opened =
          flags.peers.open(flags.words[0], options.web.times.stall_seconds, &g_stop_pull, options.on_notice);
      !opened) {
    return exit_usage(opened.error());
  }
  std::signal(SIGINT, on_pull_signal);
  std::signal(SIGTERM, on_pull_signal);
  const auto start = std::chrono::steady_clock::now();
  auto pulled = flags.peers.pull(flags.words[0], *models, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  line.clear();
  if (!pulled) return exit_failed(pulled.error());
  print_report(*pulled, flags.peers.report(), seconds, flags.json);
  std::fflush(stdout);
  flags.peers.wait_for_others(seconds);
  return 0;
}

}  // namespace doppler::cli
