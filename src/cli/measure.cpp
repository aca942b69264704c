#include "cli/measure.h"

#include <cstdio>

namespace doppler::cli {

Result<Model> load_for(const ModelFlags& flags, uint64_t positions) {
  if (flags.load.ctx_len != 0) return load_named_model(flags);
  ModelFlags raised = flags;
  raised.load.ctx_len = static_cast<uint32_t>(positions);
  if (positions > model::kDefaultCtxLen) return load_named_model(raised);
  DP_TRY(Model model, load_named_model(flags));
  if (model.info().ctx_len >= positions) return model;
  return load_named_model(raised);  // trained for less than is to be measured
}

Result<kernels::Ceilings> measure_ceilings(Model& model) {
  if (stderr_is_terminal()) std::fprintf(stderr, "measuring the device's ceilings");
  auto ceilings = bench::measure_ceilings(model);
  end_progress();
  return ceilings;
}

void end_progress() {
  if (stderr_is_terminal()) std::fprintf(stderr, "\r\033[K");
}

int deliver(const std::string& file, const std::string& report, const std::string& readable) {
  const std::string& shown = file.empty() ? report : readable;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  if (file.empty()) return 0;
  const auto written =
      write_file_atomically(file, {reinterpret_cast<const uint8_t*>(report.data()), report.size()});
  return written ? 0 : exit_failed(written.error());
}

}  // namespace doppler::cli
