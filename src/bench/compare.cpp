// Reading bench reports of two builds, checking that they may be compared, pairing their rounds.
#include "bench/compare.h"

#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

// Members that must agree, as paths.
constexpr const char* kSame[] = {"kind",           "intent",        "synthetic",
                                 "device.adapter", "device.driver", "device.provider",
                                 "device.backend", "model.name",    "model.bytes"};

const Json* at(const Json& object, std::string_view path) {
  const Json* value = &object;
  for (const std::string& key : split(path, '.')) {
    value = find(*value, key);
    if (!value) return nullptr;
  }
  return value;
}

std::string text_at(const Json& object, std::string_view path) {
  const Json* value = at(object, path);
  if (!value) return "nothing";
  return value->is_string() ? value->text() : to_text(*value);
}

Result<void> check_same(const Json& first, const Json& other) {
  for (const char* path : kSame) {
    if (text_at(first, path) == text_at(other, path)) continue;
    return fail(ErrorKind::kInvalidInput,
                "Reports of unlike runs cannot be compared: %s is \"%s\" in one and \"%s\" in another.", path,
                printable(text_at(first, path)).c_str(), printable(text_at(other, path)).c_str());
  }
  if (text_at(first, "kind") != "bench") {
    return fail(ErrorKind::kInvalidInput,
                "A report of kind \"%s\" was given; allowed is bench (doppler bench -o json).",
                printable(text_at(first, "kind")).c_str());
  }
  return {};
}

// The median rate of the test in one report; 0: it has none.
double rate_of(const Json& report, const std::string& test) {
  const Json* tests = find(report, "tests");
  if (!tests || !tests->is_array()) return 0;
  for (const Json& entry : *tests) {
    if (text_at(entry, "test") != test) continue;
    const Json* rate = at(entry, "tokens_per_second.median");
    return rate && rate->is_number() ? rate->get<double>() : 0;
  }
  return 0;
}

Json figures(const std::vector<double>& samples) {
  return {{"median", median(samples)}, {"min", least(samples)}, {"max", most(samples)}, {"samples", samples}};
}

Json build_of(const Json& report) {
  Json out = Json::object();
  for (const char* member : {"version", "commit", "date", "settings"}) {
    if (const Json* value = find(report, member)) out[member] = *value;
  }
  return out;
}

double number_at(const Json& object, std::string_view path) {
  const Json* value = at(object, path);
  return value && value->is_number() ? value->get<double>() : 0;
}

}  // namespace

Result<Json> compare_reports(std::span<const Json> base, std::span<const Json> candidate) {
  if (base.empty() || base.size() != candidate.size()) {
    return fail(ErrorKind::kInvalidInput,
                "There are %zu reports of the base and %zu of the candidate; needed are as many of each, one "
                "a round.",
                base.size(), candidate.size());
  }
  for (size_t i = 0; i < base.size(); ++i) {
    DP_CHECK(check_same(base[0], base[i]));
    DP_CHECK(check_same(base[0], candidate[i]));
  }
  Json tests = Json::array();
  if (const Json* listed = find(base[0], "tests"); listed && listed->is_array()) {
    for (const Json& entry : *listed) {
      const std::string test = text_at(entry, "test");
      std::vector<double> before, after, ratios;
      for (size_t i = 0; i < base.size(); ++i) {
        const double a = rate_of(base[i], test), b = rate_of(candidate[i], test);
        if (!(a > 0) || !(b > 0)) continue;
        before.push_back(a);
        after.push_back(b);
        ratios.push_back(b / a);
      }
      if (ratios.empty()) continue;
      tests.push_back({{"test", test},
                       {"base", figures(before)},
                       {"candidate", figures(after)},
                       {"ratio", figures(ratios)}});
    }
  }
  if (tests.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "Base and candidate have no test in common, so there is nothing to compare.");
  }
  Json out = {{"kind", "compare"}, {"rounds", base.size()}};
  for (const char* member : {"intent", "synthetic", "date", "device", "model"}) {
    if (const Json* value = find(candidate.back(), member)) out[member] = *value;
  }
  out["base"] = build_of(base[0]);
  out["candidate"] = build_of(candidate[0]);
  out["tests"] = std::move(tests);
  return out;
}

std::string compare_text(const Json& comparison) {
  std::string out = format_text(
      "%s on %s (%s), %s: base %s, candidate %s, %s rounds in turns\n\n"
      "| test | base t/s | candidate t/s | ratio | min | max |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
      text_at(comparison, "model.name").c_str(), text_at(comparison, "device.adapter").c_str(),
      text_at(comparison, "device.driver").c_str(), text_at(comparison, "device.provider").c_str(),
      text_at(comparison, "base.commit").c_str(), text_at(comparison, "candidate.commit").c_str(),
      text_at(comparison, "rounds").c_str());
  const Json* tests = find(comparison, "tests");
  if (!tests) return out;
  for (const Json& test : *tests) {
    out += format_text("| %s | %.2f | %.2f | %.3f | %.3f | %.3f |\n", text_at(test, "test").c_str(),
                       number_at(test, "base.median"), number_at(test, "candidate.median"),
                       number_at(test, "ratio.median"), number_at(test, "ratio.min"),
                       number_at(test, "ratio.max"));
  }
  return out;
}

}  // namespace doppler::bench
