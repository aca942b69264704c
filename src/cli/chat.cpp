#include "cli/chat.h"

#include <editline/readline.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/run_report.h"

namespace doppler::cli {
namespace {

constexpr const char* kHelp =
    "/reset  forget the conversation    /save FILE  save the session    /stats  figures of the last answer\n"
    "/quit   end (also Ctrl-D)          Ctrl-C stops an answer\n";

std::string history_path() {
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.doppler_history";
  return {};
}

std::optional<std::string> read_line() {
  char* line = ::readline("> ");
  if (!line) return std::nullopt;
  std::string text(line);
  std::free(line);
  if (!trim(text).empty()) ::add_history(text.c_str());
  return text;
}

}  // namespace

Result<void> chat_at_terminal(Model& model, Session& session, const ChatOptions& options) {
  const std::string history = history_path();
  ::using_history();
  if (!history.empty()) ::read_history(history.c_str());
  std::vector<Message> messages(session.messages().begin(),
                                session.messages().end());  // of a restored session
  const auto restart = [&] {
    messages.clear();
    if (!options.system.empty()) messages.push_back({"system", options.system});
    session.reset();
  };
  if (session.tokens().empty()) restart();
  std::optional<Generation> last;
  std::printf("%s on %s. /help lists the commands.\n", model.info().name.c_str(),
              model.info().adapter.c_str());

  while (const auto line = read_line()) {
    const std::string text(trim(*line));
    if (text.empty()) continue;
    if (text == "/quit" || text == "/exit") break;
    if (text == "/help") {
      std::fputs(kHelp, stdout);
      continue;
    }
    if (text == "/reset") {
      restart();
      continue;
    }
    if (text == "/stats") {
      if (last) std::printf("%s\n", run_line(model, *last).c_str());
      continue;
    }
    if (text.starts_with("/save")) {
      const std::string path(trim(std::string_view(text).substr(5)));
      const auto saved = path.empty()
                             ? Result<void>(fail(ErrorKind::kInvalidInput, "/save needs a file name."))
                             : session.save(path);
      if (!saved) std::printf("%s\n", saved.error().message().c_str());
      continue;
    }
    if (text[0] == '/') {
      std::printf("Command %s is not known; /help lists them.\n", printable(text).c_str());
      continue;
    }
    const InterruptGuard interrupt(session);
    const auto show = [](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      return std::fflush(stdout) == 0;
    };
    messages.push_back({"user", text});
    auto generation = options.use_template ? session.chat(messages, options.generate, show)
                                           : session.generate(text, options.generate, show);
    std::printf("\n");
    if (!generation) {  // the conversation goes on without this turn
      std::printf("%s\n", generation.error().message().c_str());
      messages.pop_back();
      continue;
    }
    messages.push_back({"assistant", generation->text});
    last = std::move(*generation);
  }
  if (!history.empty()) ::write_history(history.c_str());
  return {};
}

}  // namespace doppler::cli
