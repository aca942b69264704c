// The facts of a run as texts. CSV and JSON hold every field; markdown has the fields that a person compares.
#include "bench/report.h"

#include "base/json.h"
#include "bench/statistics.h"
#include "engine/load_report.h"
#include "engine/model_options.h"
#include "engine/paging_report.h"
#include "engine/scheduler/draft_policy.h"
#include "engine/tuning.h"

namespace doppler::bench {
namespace {

constexpr double kGiB = 1ull << 30;
constexpr const char* kCompile = "compile";  // the phase of a load that counts kernels

std::string parameters_text(uint64_t count) {
  const auto value = static_cast<double>(count);
  return count >= 1'000'000'000 ? format_text("%.2f B", value / 1e9) : format_text("%.2f M", value / 1e6);
}

std::string size_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value >= kGiB ? format_text("%.2f GiB", value / kGiB) : format_text("%.2f MiB", value / (1 << 20));
}

// Two decimals below 1000, as llama-bench has them.
std::string rate_text(double rate) { return format_text("%.2f", rate); }

std::string markdown_head(const Report& report) {
  const RunFacts& f = report.facts;
  std::string out =
      format_text("%s%s; lane %s, cache %s, context %u, chunk %u, batch %u; %s\n\n",
                  report.intent == Intent::kInvestigate ? "INVESTIGATION, not to be quoted: " : "",
                  device_line(f.caps).c_str(), f.lane.c_str(), f.kv.c_str(), f.ctx_len, f.chunk, f.batch,
                  origin_line(f.origin).c_str());
  if (const std::string changes = changes_lines(f); !changes.empty()) out += changes + "\n";
  out +=
      "| model | size | params | backend | lane | test | t/s | median | min | max |\n"
      "| --- | ---: | ---: | --- | --- | --- | ---: | ---: | ---: | ---: |\n";
  return out;
}

std::string markdown_row(const RunFacts& f, const Row& row) {
  return format_text("| %s | %s | %s | %s %s | %s | %s | %s ± %s | %s | %s | %s |\n", model_label(f).c_str(),
                     size_text(f.model_bytes).c_str(), parameters_text(f.parameters).c_str(),
                     f.caps.provider.c_str(), f.caps.backend.c_str(), f.lane.c_str(), row.test.name().c_str(),
                     rate_text(mean(row.rates)).c_str(), rate_text(stddev(row.rates)).c_str(),
                     rate_text(median(row.rates)).c_str(), rate_text(least(row.rates)).c_str(),
                     rate_text(most(row.rates)).c_str());
}

std::string markdown_of_one(const std::vector<Row>& rows) {
  std::string out =
      "\n| test | TTFT ms | submits/token | dispatches/token | readback B/token | host us/token | of read "
      "bandwidth "
      "| wall/GPU | objects created |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Row& row : rows) {
    const std::string ttft = row.ttft_seconds > 0 ? format_text("%.2f", row.ttft_seconds * 1e3) : "-";
    const std::string share =
        row.bandwidth_fraction > 0 ? format_text("%.1f %%", row.bandwidth_fraction * 100) : "-";
    const std::string busy = row.gpu_seconds > 0 ? format_text("%.3f", row.wall_over_gpu()) : "-";
    const std::string host = row.host_us_per_token > 0 ? format_text("%.2f", row.host_us_per_token) : "-";
    out += format_text("| %s | %s | %.3f | %.2f | %.2f | %s | %s | %s | %llu |\n", row.test.name().c_str(),
                       ttft.c_str(), row.submits_per_token, row.dispatches_per_token,
                       row.readback_bytes_per_token, host.c_str(), share.c_str(), busy.c_str(),
                       static_cast<unsigned long long>(row.objects_created));
  }
  return out;
}

std::string markdown_of_streams(const std::vector<Row>& rows) {
  std::string out =
      "\n| test | t/s of each | ms for a token | longest wait ms |\n| --- | ---: | ---: | ---: |\n";
  for (const Row& row : rows) {
    out += format_text("| %s | %s | %.2f | %.2f |\n", row.test.name().c_str(),
                       rate_text(median(row.rates) / row.test.streams).c_str(), row.token_seconds * 1e3,
                       row.longest_wait_seconds * 1e3);
  }
  return out;
}

std::string surface_load_line(const SurfaceLoad& load) {
  std::string phases;
  for (const SurfaceLoad::Phase& phase : load.phases) {
    phases += format_text("%s%s %.2f s", phases.empty() ? "" : ", ", phase.name.c_str(), phase.seconds);
    if (phase.bytes == 0) continue;
    phases += phase.name == kCompile
                  ? format_text(" (%llu kernels)", static_cast<unsigned long long>(phase.bytes))
                  : " (" + format_bytes(phase.bytes) + ")";
  }
  return format_text("load %s %.2f s: %s\n", load.mode.c_str(), load.seconds, phases.c_str());
}

Json surface_loads_json(const std::vector<SurfaceLoad>& loads) {
  Json out = {{"seconds", loads.back().seconds}};
  for (const SurfaceLoad& load : loads) {
    Json phases = Json::array();
    for (const SurfaceLoad::Phase& phase : load.phases)
      phases.push_back({{"phase", phase.name}, {"seconds", phase.seconds}, {"bytes", phase.bytes}});
    out[load.mode] = {{"seconds", load.seconds}, {"phases", std::move(phases)}};
  }
  return out;
}

// "steps of 1, 2, 4 rows take 1.93, 2.05, 2.31 ms (1.00, 1.06, 1.20)".
std::string step_times_line(const Row& row) {
  std::string rows, times, costs;
  for (const Row::StepTime& of : row.step_times) {
    const char* const comma = rows.empty() ? "" : ", ";
    rows += format_text("%s%u", comma, of.rows);
    times += format_text("%s%.3f", comma, of.seconds * 1e3);
    costs += format_text("%s%.2f", comma, of.seconds / row.step_times.front().seconds);
  }
  return format_text("steps of %s rows take %s ms (%s)", rows.c_str(), times.c_str(), costs.c_str());
}

std::string markdown_tail(const Report& report) {
  const RunFacts& f = report.facts;
  std::vector<Row> alone, streams;
  for (const Row& row : report.rows) (row.test.streams == 0 ? alone : streams).push_back(row);
  std::string out;
  if (!alone.empty()) out += markdown_of_one(alone);
  if (!streams.empty()) out += markdown_of_streams(streams);
  out += "\n";
  for (const SurfaceLoad& load : f.loads) out += surface_load_line(load);
  if (f.loads.empty()) out += engine::load_line(f.load) + "\n";
  out += format_text("memory %s (weights %s, cache %s, scratch %s)\n",
                     format_bytes(f.weight_bytes + f.cache_bytes + f.scratch_bytes).c_str(),
                     format_bytes(f.weight_bytes).c_str(), format_bytes(f.cache_bytes).c_str(),
                     format_bytes(f.scratch_bytes).c_str());
  for (const Row& row : report.rows) {
    if (row.experts.slots != 0) out += row.test.name() + ", " + engine::paging_line(row.experts) + "\n";
    if (row.drafts.drafted != 0)
      out += row.test.name() + ", " + engine::drafts_line(row.drafts.drafted, row.drafts.accepted) + "\n";
    if (!row.step_times.empty()) out += row.test.name() + ", " + step_times_line(row) + "\n";
  }
  if (!f.loads.empty()) return out;
  out += ceilings_line(f.ceilings);
  return out;
}

Json row_json(const Row& row) {
  Json times = Json::array();
  for (const Row::StepTime& of : row.step_times)
    times.push_back({{"rows", of.rows}, {"seconds", of.seconds}});
  return {{"test", row.test.name()},
          {"prompt", row.test.prompt},
          {"generate", row.test.generate},
          {"depth", row.test.depth},
          {"tokens_per_second",
           {{"median", median(row.rates)},
            {"mean", mean(row.rates)},
            {"stddev", stddev(row.rates)},
            {"min", least(row.rates)},
            {"max", most(row.rates)},
            {"samples", row.rates}}},
          {"ttft_seconds", row.ttft_seconds},
          {"submits_per_token", row.submits_per_token},
          {"dispatches_per_token", row.dispatches_per_token},
          {"readback_bytes_per_token", row.readback_bytes_per_token},
          {"host_us_per_token", row.host_us_per_token},
          {"bandwidth_fraction", row.bandwidth_fraction},
          {"gpu_seconds_per_token", row.gpu_seconds},
          {"wall_over_gpu", row.wall_over_gpu()},
          {"objects_created", row.objects_created},
          {"streams", row.test.streams},
          {"token_seconds", row.token_seconds},
          {"longest_wait_seconds", row.longest_wait_seconds},
          {"drafted_tokens", row.drafts.drafted},
          {"accepted_tokens", row.drafts.accepted},
          {"step_times", std::move(times)}};
}

Json report_json(const Report& report) {
  const RunFacts& f = report.facts;
  Json tests = Json::array();
  for (const Row& row : report.rows) {
    tests.push_back(row_json(row));
    if (row.experts.slots != 0) tests.back()["experts"] = engine::paging_json(row.experts);
  }
  Json out = {{"kind", "bench"},
              {"intent", intent_name(report.intent)},
              {"surface", f.surface},
              {"synthetic", f.synthetic}};
  add_origin(out, f.origin);
  out.update({{"device", device_json(f.caps)},
              {"model", model_json(f)},
              {"settings",
               {{"lane", f.lane},
                {"kv", f.kv},
                {"rules_off", f.rules_off},
                {"ctx_len", f.ctx_len},
                {"sequences", f.sequences},
                {"chunk", f.chunk},
                {"batch", f.batch},
                {"readback_interval", f.readback_interval},
                {"draft_edits", f.draft_edits},
                {"ring", f.ring},
                {"warmups", f.warmups},
                {"repetitions", f.repetitions}}},
              {"load", f.loads.empty() ? engine::load_json(f.load) : surface_loads_json(f.loads)},
              {"memory",
               {{"weight_bytes", f.weight_bytes},
                {"cache_bytes", f.cache_bytes},
                {"scratch_bytes", f.scratch_bytes},
                {"total_bytes", f.weight_bytes + f.cache_bytes + f.scratch_bytes}}},
              {"ceilings", f.loads.empty() ? ceilings_json(f.ceilings) : Json()},
              {"tests", std::move(tests)}});
  return out;
}

// The fields of an object of objects, joined by dots; arrays in one field, their items apart by spaces.
void flatten(const Json& value, const std::string& name,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      flatten(member, name.empty() ? key : name + "." + key, out);
    return;
  }
  std::string text;
  if (value.is_array()) {
    for (const Json& item : value) text += (text.empty() ? "" : " ") + doppler::to_text(item);
  } else {
    text = value.is_string() ? value.text() : doppler::to_text(value);
  }
  if (text.find_first_of(",\"\n") != std::string::npos) {
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    text = quoted + "\"";
  }
  out.emplace_back(name, std::move(text));
}

// One line a test, with all that the JSON says; before the first the names of its fields.
std::string csv_row(const Report& report, size_t number) {
  Json facts = report_json(report);
  const Json test = facts["tests"][number];
  facts.erase("tests");
  std::vector<std::pair<std::string, std::string>> fields;
  flatten(test, "", fields);
  flatten(facts, "", fields);
  std::string names, values;
  for (const auto& [name, text] : fields) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + text;
  }
  return (number == 0 ? names + "\n" : "") + values + "\n";
}

}  // namespace

Result<kernels::Ceilings> measure_ceilings(Model& model) {
  gpu::Device& device = *Model::Impl::of(model).device;
  auto measuring = kernels::measure_ceilings(device);
  return gpu::run_to_completion(device, std::move(measuring));
}

RunFacts collect_facts(Model& model, Origin origin, const kernels::Ceilings& ceilings) {
  const ModelInfo& info = model.info();
  const Model::Impl& impl = Model::Impl::of(model);
  const model::DeviceModel& runner = *impl.loaded->runner;
  RunFacts facts{.origin = std::move(origin),
                 .model = info.name,
                 .architecture = info.architecture,
                 .synthetic = info.synthetic,
                 .n_layers = info.n_layers,
                 .caps = impl.device->caps(),
                 .lane = runner.options().policy.name,
                 .kv = kernels::cache_format_name(runner.options().cache_format),
                 .rules_off = {},
                 .ctx_len = info.ctx_len,
                 .chunk = runner.options().chunk,
                 .batch = engine::default_batch(*impl.loaded),
                 .ring = runner.options().tickets,
                 .load = info.load,
                 .weight_bytes = info.weight_bytes,
                 .cache_bytes = info.cache_bytes,
                 .scratch_bytes = info.scratch_bytes,
                 .ceilings = ceilings,
                 .experts = engine::paging_of(*impl.loaded)};
  for (const std::string& rule : runner.options().rules.off()) facts.rules_off.push_back(rule);
  count_weights(facts, *impl.loaded->checkpoint);
  return facts;
}

void count_weights(RunFacts& facts, const formats::Checkpoint& checkpoint) {
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    uint64_t count = 1;
    for (const uint64_t extent : tensor.shape) count *= extent;
    facts.parameters += count;
    facts.model_bytes += tensor.bytes;
  }
}

Result<Format> parse_format(std::string_view name) {
  if (name == "md" || name == "markdown") return Format::kMarkdown;
  if (name == "csv") return Format::kCsv;
  if (name == "json") return Format::kJson;
  return fail(ErrorKind::kInvalidInput, "Output format \"%s\" is not known; allowed are md, csv and json.",
              printable(name).c_str());
}

std::string head_text(const Report& report, Format format) {
  return format == Format::kMarkdown ? markdown_head(report) : "";
}

std::string row_text(const Report& report, size_t number, Format format) {
  switch (format) {
    case Format::kMarkdown:
      return markdown_row(report.facts, report.rows[number]);
    case Format::kCsv:
      return csv_row(report, number);
    case Format::kJson:
      return {};
  }
  return {};
}

std::string tail_text(const Report& report, Format format) {
  switch (format) {
    case Format::kMarkdown:
      return markdown_tail(report);
    case Format::kCsv:
      return {};
    case Format::kJson:
      return doppler::to_text(report_json(report), 2) + "\n";
  }
  return {};
}

std::string to_text(const Report& report, Format format) {
  std::string out = head_text(report, format);
  for (size_t i = 0; i < report.rows.size(); ++i) out += row_text(report, i, format);
  return out + tail_text(report, format);
}

Json device_json(const gpu::Caps& caps) {
  return {{"adapter", caps.adapter},   {"vendor", caps.vendor},
          {"driver", caps.driver},     {"type", gpu::adapter_type_name(caps.type)},
          {"provider", caps.provider}, {"backend", caps.backend}};
}

Json model_json(const RunFacts& facts) {
  return {{"name", facts.model},          {"architecture", facts.architecture},
          {"synthetic", facts.synthetic}, {"parameters", facts.parameters},
          {"bytes", facts.model_bytes},   {"n_layers", facts.n_layers}};
}

std::string ceilings_line(const kernels::Ceilings& c) {
  std::string operations = format_text("f32 %.3g, dp4a %.3g", c.f32_operations_per_second / 1e12,
                                       c.dp4a_operations_per_second / 1e12);
  if (c.matrix_operations_per_second > 0)
    operations += format_text(", matrix %.3g", c.matrix_operations_per_second / 1e12);
  return format_text("ceilings: read %.1f GB/s; %s T operations/s; dispatch %.2f us\n",
                     c.read_bytes_per_second / 1e9, operations.c_str(), c.dispatch_ns / 1e3);
}

Json ceilings_json(const kernels::Ceilings& ceilings) {
  return {{"read_bytes_per_second", ceilings.read_bytes_per_second},
          {"f32_operations_per_second", ceilings.f32_operations_per_second},
          {"dp4a_operations_per_second", ceilings.dp4a_operations_per_second},
          {"matrix_operations_per_second", ceilings.matrix_operations_per_second},
          {"dispatch_ns", ceilings.dispatch_ns},
          {"by_timestamps", ceilings.by_timestamps}};
}

std::string device_line(const gpu::Caps& caps) {
  return format_text("%s (%s), %s %s", caps.adapter.c_str(), caps.driver.c_str(), caps.provider.c_str(),
                     caps.backend.c_str());
}

std::string model_label(const RunFacts& facts) {
  return facts.model + (facts.synthetic ? " (SYNTHETIC weights)" : "");
}

std::string changes_lines(const RunFacts& facts) {
  std::string names;
  for (const std::string& rule : facts.rules_off) names += (names.empty() ? "" : ", ") + rule;
  return (names.empty() ? "" : "rules off: " + names + "\n") + preset_line(facts.origin.preset);
}

}  // namespace doppler::bench
