// Fuzz target: the answer of a hub's API, and the choice of files from it.
#include <cstdlib>
#include <string_view>

#include "store/hub.h"
#include "store/url.h"

using namespace doppler::store;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto repo = parse_hub_repo({reinterpret_cast<const char*>(data), size});
  if (!repo) return 0;
  for (const char* selector : {"", "Q4_K_M", "m.gguf"}) {
    const auto choice = choose_files(*repo, {.repo = "org/name", .selector = selector, .revision = {}});
    if (!choice) continue;
    for (const HubFile& file : choice->files) {
      if (file.path.find("..") == 0 || file.path.starts_with('/')) std::abort();
    }
  }
  return 0;
}
