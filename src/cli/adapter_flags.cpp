#include "cli/adapter_flags.h"

#include <cmath>

#include "base/text.h"
#include "cli/common.h"
#include "engine/adapters.h"
#include "formats/file_set_native.h"

namespace doppler::cli {

Result<AdapterFile> parse_adapter(std::string_view text) {
  AdapterFile out;
  std::string_view file = text;
  const size_t equals = file.find('=');
  if (equals != std::string_view::npos && file.substr(0, equals).find('/') == std::string_view::npos) {
    out.name = std::string(file.substr(0, equals));
    file.remove_prefix(equals + 1);
  }
  const size_t colon = file.rfind(':');
  if (colon != std::string_view::npos && file.find('/', colon) == std::string_view::npos) {
    if (const auto scale = parse_double(file.substr(colon + 1)); scale && std::isfinite(*scale)) {
      out.scale = static_cast<float>(*scale);
      file = file.substr(0, colon);
    }
  }
  out.path = std::string(file);
  if (!out.path.empty() && equals != 0) return out;
  return fail(
      ErrorKind::kInvalidInput,
      "Flag --lora was given \"%s\"; it takes [NAME=]FILE[:SCALE], such as adapter.gguf or adapter.gguf:0.5.",
      printable(text).c_str());
}

void add_adapter_flags(Args& args, LoadOptions& load) {
  args.custom("lora", 0, "[NAME=]FILE[:SCALE]",
              "low-rank adapter: a PEFT folder or a GGUF file; may be repeated. With a NAME only requests "
              "that ask for "
              "it have it",
              [&load](std::string_view value) -> Result<void> {
                DP_TRY(AdapterFile file, parse_adapter(value));
                load.adapters.push_back(std::move(file));
                return {};
              });
  args.count("lora-slots", 0, "N",
             "adapters in GPU memory at a time (default: those of --lora, 8 with names)", &load.adapter_slots,
             {.least = 1, .most = model::kMostAdapterSlots});
  args.count("lora-rank", 0, "RANK",
             "room for adapters of this rank, also of several together (default: as needed)",
             &load.adapter_rank, {.least = 1, .most = formats::kMostAdapterRank});
}

Result<bool> names_adapter(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  auto files = formats::open_file_set(words[0]);
  if (!files) return false;  // opening it as a model says why
  return run_now(formats::is_adapter(**files));
}

}  // namespace doppler::cli
