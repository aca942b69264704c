// doppler rm: removes models, or what unfinished downloads left, from the store.
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "store/model_store.h"

namespace doppler::cli {

int rm_verb(std::span<const std::string> arguments) {
  bool json = false;
  std::vector<std::string> words;
  Args args("doppler rm [flags] NAME...",
            "Removes models, or what unfinished downloads left, from the store.");
  args.words("NAME", &words);
  args.flag("json", 0, "print one JSON object", &json);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (words.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "A name of a stored model is needed (doppler list)."));
  }
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());
  Json removed = Json::array();
  for (const std::string& name : words) {
    auto freed = models->remove(name);
    if (!freed) return exit_failed(freed.error());
    removed.push_back({{"name", name}, {"freed_bytes", *freed}});
    if (!json) std::printf("%s: %s freed\n", name.c_str(), format_bytes(*freed).c_str());
  }
  if (json) std::printf("%s\n", to_text(Json({{"removed", std::move(removed)}}), 2).c_str());
  return 0;
}

}  // namespace doppler::cli
