// Fuzz target: the answer of a hub's API, and the choice of files from it.
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "store/hub.h"
#include "store/url.h"

using namespace doppler::store;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto repo = parse_hub_repo({reinterpret_cast<const char*>(data), size});
  if (!repo) return 0;
  for (const char* selector : {"", "Q4_K_M", "m.gguf"}) {
    const auto read = [](const std::string& path) -> doppler::Result<std::string> {
      return std::string(path == "modules.json" ? R"([{"path": "1_Pooling"}, {"path": ".."}])"
                                                : R"({"weight_map": {"a": "model.safetensors"}})");
    };
    const auto choice = choose_files(*repo, {.repo = "org/name", .selector = selector, .revision = {}}, read);
    if (!choice) continue;
    for (const HubFile& file : choice->files) {
      // A name may begin with dots ("..Q4_K_M.gguf"); a part that is ".." would lead out of the folder.
      for (const std::string& part : doppler::split(file.path, '/')) {
        if (part.empty() || part == "." || part == "..") std::abort();
      }
    }
  }
  return 0;
}
