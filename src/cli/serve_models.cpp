// doppler serve-models: a folder of models over HTTP, for browsers and for pulls.
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "store/file_server.h"
#include "store/model_store.h"

namespace doppler::cli {

int serve_models_verb(std::span<const std::string> arguments) {
  constexpr uint32_t kUsualPort = 8017;
  store::ServeOptions options;
  uint32_t port = kUsualPort;
  bool json = false;
  std::vector<std::string> words;
  Args args("doppler serve-models [flags] [FOLDER]",
            "Serves the files of a folder (default: the store) over HTTP: read only, with ranges and CORS. "
            "Ctrl-C ends it.");
  args.words("FOLDER", &words);
  args.text("host", 0, "ADDRESS", "address to listen at (default 127.0.0.1: this machine alone)",
            &options.listen.host);
  args.count("port", 'p', "PORT", "port (default 8017; 0: any free one)", &port);
  args.text("origin", 0, "ORIGIN", "whose web pages may read, such as https://example.org (default *: all)",
            &options.origin);
  args.count("connections", 0, "N", "at most so many at once (default 256)",
             &options.listen.most_connections);
  args.count("timeout", 0, "SECONDS",
             "until a connection without a whole request, or that takes nothing, is closed (default 30)",
             &options.listen.timeout_seconds);
  args.flag("json", 0, "print one JSON object when it listens", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (words.size() > 1)
    return exit_usage(Error(ErrorKind::kInvalidInput, "Several folders were given; one is served."));
  if (port > UINT16_MAX) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            format_text("Flag --port was given %u; allowed is 0 to 65535.", port)));
  }
  if (options.listen.most_connections == 0 || options.listen.timeout_seconds == 0) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flags --connections and --timeout take 1 or more."));
  }
  if (options.origin.find_first_of("\r\n") != std::string::npos) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flag --origin takes one line."));
  }
  options.listen.port = static_cast<uint16_t>(port);
  if (words.empty()) {
    auto models = store::ModelStore::open();
    if (!models) return exit_failed(models.error());
    options.folder = models->folder();
  } else {
    options.folder = words[0];
  }
  const std::string folder = options.folder;
  auto server = store::open_file_server(std::move(options));
  if (!server) return exit_failed(server.error());
  if (json) {
    const Json out = {{"url", (*server)->url()}, {"port", (*server)->port()}, {"folder", folder}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    std::printf("%s is served at %s (Ctrl-C ends it)\n", folder.c_str(), (*server)->url().c_str());
  }
  std::fflush(stdout);
  if (auto served = (*server)->run(); !served) return exit_failed(served.error());
  return 0;
}

}  // namespace doppler::cli
