// doppler cp: a stored model under a second name, or out of the store to a path.
#include <cstdio>

#include "base/folders.h"
#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "store/model_store.h"

namespace doppler::cli {
namespace {

// A path has a separator, or is a folder that is there; anything else is a name.
bool is_path(const std::string& target) { return !parent_path(target).empty() || is_folder(target); }

}  // namespace

int cp_verb(std::span<const std::string> arguments) {
  bool json = false;
  std::vector<std::string> words;
  Args args("doppler cp [flags] NAME TARGET",
            "Gives a stored model a second name (no bytes are copied where the disk has links), or copies it "
            "to a path "
            "(TARGET has a / or is a folder; a folder that is not there is made).");
  args.words("NAME TARGET", &words);
  args.flag("json", 0, "print one JSON object", &json);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (words.size() != 2) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "The name of a stored model and a target are needed."));
  }
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());
  std::string path = words[1];
  if (is_path(words[1])) {
    auto copied = models->copy_out(words[0], words[1]);
    if (!copied) return exit_failed(copied.error());
    path = std::move(*copied);
  } else {
    auto copy = models->copy(words[0], words[1]);
    if (!copy) return exit_failed(copy.error());
    path = copy->load_path();
  }
  if (json) {
    const Json out = {{"from", words[0]}, {"to", words[1]}, {"path", path}};
    std::printf("%s\n", to_text(out, 2).c_str());
  } else {
    std::printf("%s is now also %s\n", words[0].c_str(), path.c_str());
  }
  return 0;
}

}  // namespace doppler::cli
