// A squeeze as a text and as JSON.
#include "base/json.h"
#include "base/text.h"
#include "bench/squeeze.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

Json figures(const Row& row) {
  return {{"median", median(row.rates)},
          {"min", least(row.rates)},
          {"max", most(row.rates)},
          {"samples", row.rates}};
}

Json flags_json(const std::vector<RedFlag>& flags) {
  Json out = Json::array();
  for (const RedFlag& flag : flags) out.push_back({{"name", flag.name}, {"sentence", flag.sentence}});
  return out;
}

std::string flags_text(const char* when, const std::vector<RedFlag>& flags) {
  std::string out = format_text("\nRed flags %s: %s\n", when, flags.empty() ? "none" : "");
  for (const RedFlag& flag : flags) out += "- " + flag.name + ": " + flag.sentence + "\n";
  return out;
}

double ratio_of(const Row& before, const Row& after) {
  const double base = median(before.rates);
  return base > 0 ? median(after.rates) / base : 0;
}

}  // namespace

std::string squeeze_text(const SqueezeReport& report) {
  const RunFacts& f = report.facts;
  std::string out =
      format_text("%s on %s; lane %s, cache %s; %s\n\n", model_label(f).c_str(), device_line(f.caps).c_str(),
                  f.lane.c_str(), f.kv.c_str(), origin_line(f.origin).c_str());
  if (const std::string changes = changes_lines(f); !changes.empty()) out += changes + "\n";
  out +=
      "| test | before t/s | min | max | after t/s | min | max | ratio |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (size_t i = 0; i < report.before.size() && i < report.after.size(); ++i) {
    const Row &a = report.before[i], &b = report.after[i];
    out += format_text("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f |\n", a.test.name().c_str(),
                       median(a.rates), least(a.rates), most(a.rates), median(b.rates), least(b.rates),
                       most(b.rates), ratio_of(a, b));
  }
  out += "\nCadence: decode t/s by steps of a submit x submits whose tokens come back together\n";
  for (const CadencePoint& point : report.sweep) {
    const bool chosen = point.cadence.batch == report.cadence.batch &&
                        point.cadence.readback_interval == report.cadence.readback_interval;
    out += format_text("  %3u x %u  %10.2f%s\n", point.cadence.batch, point.cadence.readback_interval,
                       point.rate, chosen ? "  CHOSEN" : "");
  }
  out += flags_text("before", report.flags_before) + flags_text("after", report.flags_after);
  out += "\nProfile before (investigation, not to be quoted):\n";
  for (const std::string& note : report.notes) out += "- " + note + "\n";
  out += "\nTuning:\n" + tuner_text(report.tuning);
  out += "\nCorrectness " + report.gate.sentence + "\n";
  if (!report.gate.passed) out += "Nothing was stored.\n";
  out += "\nCommands:\n";
  for (const std::string& command : report.commands) out += "  " + command + "\n";
  return out;
}

std::string squeeze_json(const SqueezeReport& report) {
  const RunFacts& f = report.facts;
  Json tests = Json::array(), sweep = Json::array(), attempts = Json::array();
  for (size_t i = 0; i < report.before.size() && i < report.after.size(); ++i) {
    tests.push_back({{"test", report.before[i].test.name()},
                     {"before", figures(report.before[i])},
                     {"after", figures(report.after[i])},
                     {"ratio", ratio_of(report.before[i], report.after[i])}});
  }
  for (const CadencePoint& point : report.sweep) {
    sweep.push_back({{"batch", point.cadence.batch},
                     {"readback_interval", point.cadence.readback_interval},
                     {"tokens_per_second", point.rate}});
  }
  for (const Attempt& attempt : report.tuning.attempts) {
    attempts.push_back({{"operation", attempt.operation},
                        {"shape", attempt.shape},
                        {"phase", phase_name(attempt.phase)},
                        {"from", attempt.from},
                        {"to", attempt.to},
                        {"ratio", attempt.ratio},
                        {"kept", attempt.kept},
                        {"verdict", attempt.verdict}});
  }
  Json out = {{"kind", "squeeze"}, {"intent", intent_name(Intent::kCalibrate)}, {"synthetic", f.synthetic}};
  add_origin(out, f.origin);
  out.update({{"device", device_json(f.caps)},
              {"model", model_json(f)},
              {"settings", {{"lane", f.lane}, {"kv", f.kv}, {"ctx_len", f.ctx_len}, {"chunk", f.chunk}}},
              {"ceilings", ceilings_json(f.ceilings)},
              {"tests", std::move(tests)},
              {"cadence",
               {{"batch", report.cadence.batch},
                {"readback_interval", report.cadence.readback_interval},
                {"sweep", std::move(sweep)}}},
              {"red_flags",
               {{"before", flags_json(report.flags_before)}, {"after", flags_json(report.flags_after)}}},
              {"notes", report.notes},
              {"tuning", {{"out_of_time", report.tuning.out_of_time}, {"attempts", std::move(attempts)}}},
              {"correctness",
               {{"passed", report.gate.passed},
                {"error_before", report.gate.error_before},
                {"error_after", report.gate.error_after},
                {"allowed", report.gate.allowed},
                {"equal_tokens", report.gate.equal_tokens},
                {"tokens", report.gate.tokens}}},
              {"commands", report.commands}});
  return doppler::to_text(out, 2) + "\n";
}

}  // namespace doppler::bench
