#include "cli/chat.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/line_editor.h"
#include "base/own_folders_native.h"
#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/run_report.h"

namespace doppler::cli {
namespace {

constexpr const char* kHelp =
    "/reset  forget the conversation    /save FILE  save the session    /stats  figures of the last answer\n"
    "/image FILE  a picture for what you say next                       Ctrl-C stops an answer\n"
    "/quit   end (also Ctrl-D)\n";

std::string history_path() {
  const std::string home = home_folder();
  return home.empty() ? home : home + "/.doppler_history";
}

}  // namespace

Result<Message> user_message(std::string_view text, std::span<const std::string> image_files) {
  Message message{.role = "user", .content = std::string(text)};
  for (const std::string& file : image_files) {
    DP_TRY(auto image, Image::load(file));
    message.parts.push_back({.text = {}, .image = std::move(image)});
  }
  if (!message.parts.empty()) message.parts.push_back({.text = std::string(text), .image = nullptr});
  return message;
}

Result<void> chat_at_terminal(Model& model, Session& session, const ChatOptions& options) {
  LineEditor editor(history_path());
  std::vector<Message> messages(session.messages().begin(),
                                session.messages().end());  // of a restored session
  const auto restart = [&] {
    messages.clear();
    if (!options.system.empty()) messages.push_back({"system", options.system});
    session.reset();
  };
  if (session.tokens().empty()) restart();
  std::optional<Generation> last;
  std::vector<std::string> images;  // for the next message
  std::printf("%s on %s. /help lists the commands.\n", model.info().name.c_str(),
              model.info().adapter.c_str());

  while (const auto line = editor.read("> ")) {
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
    if (text.starts_with("/image")) {
      const std::string path(trim(std::string_view(text).substr(6)));
      const auto read = user_message("", std::span(&path, 1));
      if (!model.info().reads_images) {
        std::printf("The model %s reads no pictures.\n", model.info().name.c_str());
      } else if (!read) {
        std::printf("%s\n", read.error().message().c_str());
      } else {
        images.push_back(path);
      }
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
    auto asked = user_message(text, images);
    if (!asked) {
      std::printf("%s\n", asked.error().message().c_str());
      continue;
    }
    messages.push_back(std::move(*asked));
    auto generation = options.use_template ? session.chat(messages, options.generate, show)
                                           : session.generate(text, options.generate, show);
    std::printf("\n");
    if (!generation) {  // the conversation goes on without this turn
      std::printf("%s\n", generation.error().message().c_str());
      messages.pop_back();
      continue;
    }
    images.clear();
    messages.push_back({"assistant", generation->text});
    last = std::move(*generation);
  }
  return {};
}

}  // namespace doppler::cli
