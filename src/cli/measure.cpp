#include "cli/measure.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "base/folders.h"
#include "cli/build_commit.h"

namespace doppler::cli {

Result<Model> load_for(const ModelFlags& given, uint64_t positions) {
  ModelFlags flags = given;
  if (flags.load.draft == "auto") flags.load.draft = "off";  // what a step takes, not what a text gives
  if (flags.load.ctx_len != 0) return load_named_model(flags);
  ModelFlags raised = flags;
  raised.load.ctx_len = static_cast<uint32_t>(positions);
  if (positions > model::kDefaultCtxLen) return load_named_model(raised);
  DP_TRY(Model model, load_named_model(flags));
  if (model.info().ctx_len >= positions) return model;
  return load_named_model(raised);  // trained for less than is to be measured
}

bench::Origin origin_of(const ModelFlags& flags) {
  return bench::make_origin(DOPPLER_VERSION, build_commit(), flags.preset.used);
}

Result<void> check_preset(const ModelFlags& flags, bench::Intent intent) {
  const PresetUse& preset = flags.preset;
  if (preset.used.name.empty() || std::ranges::count(preset.intents, intent) > 0) return {};
  return fail(ErrorKind::kInvalidInput,
              "Preset %s does not serve intent %s; its file says which it serves (--preset list).",
              preset.used.name.c_str(), bench::intent_name(intent));
}

Result<kernels::Ceilings> measure_ceilings(Model& model) {
  if (stderr_is_terminal()) std::fprintf(stderr, "measuring the device's ceilings");
  auto ceilings = bench::measure_ceilings(model);
  end_progress();
  return ceilings;
}

Result<void> check_cadence(const bench::Cadence& cadence) {
  const uint64_t steps = uint64_t{std::max(1u, cadence.batch)} * cadence.readback_interval;
  if (steps <= model::kMaxBatch) return {};
  return fail(ErrorKind::kInvalidInput,
              "Flags --batch %u and --readback-interval %u ask for tokens of %llu steps together; allowed is "
              "1 to %u.",
              cadence.batch, cadence.readback_interval, static_cast<unsigned long long>(steps),
              model::kMaxBatch);
}

void end_progress() {
  if (stderr_is_terminal()) std::fprintf(stderr, "\r\033[K");
}

Result<void> check_report_file(const std::string& file) {
  if (file.empty()) return {};
  if (is_folder(file)) return fail(ErrorKind::kIo, "Cannot write %s: it is a folder.", file.c_str());
  // As write_file_atomically() writes.
  const std::string temporary = file + ".part";
  std::FILE* made = open_stdio(temporary, "ab");
  if (!made) return fail(ErrorKind::kIo, "Cannot write %s: %s.", file.c_str(), std::strerror(errno));
  std::fclose(made);
  remove_file(temporary);
  return {};
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
