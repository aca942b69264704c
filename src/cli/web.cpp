// doppler web: the page (web/page), served to the browser of this machine. Models run there, not here.
#include <cstdio>
#include <cstdlib>

#include "base/child_process.h"
#include "base/folders.h"
#include "base/json.h"
#include "cli/beside_program.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "store/file_server.h"

namespace doppler::cli {
namespace {

constexpr uint32_t kUsualPort = 8018;
constexpr const char* kIndex = "index.html";

// Where web/page/build.mjs put the page.
Result<std::string> built_page() {
  if (auto page = beside_program({"web/dist", "share/doppler/web"}, kIndex)) return std::move(*page);
  return fail(ErrorKind::kIo,
              "The page is not built: there is no web/dist/index.html. Run: tools/setup wasm && cmake "
              "--preset wasm && "
              "cmake --build --preset wasm --target doppler_core && node web/page/build.mjs");
}

// Browsers give WebGPU to pages of https and of the machine itself.
bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

int web_verb(std::span<const std::string> arguments) {
  store::ServeOptions options;
  options.index = kIndex;
  options.origin = "";
  options.gives_gzip = true;
  uint32_t port = kUsualPort;
  bool no_open = false, json = false;
  Args args("doppler web [flags]",
            "Serves a page on which models run in your browser's WebGPU: chat, models, bench, device. The "
            "page is at /, "
            "the package at /doppler.mjs, the default model at /models/storyteller.gguf. Ctrl-C ends it.");
  args.count("port", 'p', "PORT", "port (default 8018; 0: any free one)", &port);
  args.text("host", 0, "ADDRESS", "address to listen at (default 127.0.0.1: this machine alone)",
            &options.listen.host);
  args.text("site", 0, "FOLDER", "the built page (default: web/dist beside the program)", &options.folder);
  args.flag("no-open", 0, "do not open a browser", &no_open);
  args.flag("json", 0, "print one JSON object when it listens", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (port > UINT16_MAX) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            format_text("Flag --port was given %u; allowed is 0 to 65535.", port)));
  }
  options.listen.port = static_cast<uint16_t>(port);
  if (options.folder.empty()) {
    auto page = built_page();
    if (!page) return exit_failed(page.error());
    options.folder = *page;
  } else if (!is_there(joined_path(options.folder, kIndex))) {
    return exit_failed(Error(ErrorKind::kIo, "There is no index.html in " + options.folder +
                                                 "; node web/page/build.mjs --out FOLDER makes the page."));
  }
  const bool is_near = is_this_machine(options.listen.host);
  auto server = store::open_file_server(std::move(options));
  if (!server) return exit_failed(server.error());
  const std::string url = (*server)->url();
  if (json) {
    const Json out = {{"url", url}, {"port", (*server)->port()}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    std::printf("Doppler's page is at %s (Ctrl-C ends it)\n", url.c_str());
  }
  std::fflush(stdout);
  if (!is_near) {
    std::fprintf(stderr,
                 "doppler: Browsers of other machines give this page no WebGPU unless it comes by https: put "
                 "a proxy with "
                 "a certificate before it.\n");
  }
  if (!no_open && !json) show_in_browser(url);
  if (auto served = (*server)->run(); !served) return exit_failed(served.error());
  return 0;
}

}  // namespace doppler::cli
