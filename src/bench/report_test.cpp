// The three formats of a bench report: llama-bench's columns, every field in JSON and CSV, labels that must
// not be lost.
#include "bench/report.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/log.h"

namespace doppler::bench {
namespace {

Report sample_report() {
  Report report;
  RunFacts& f = report.facts;
  f.origin = {.version = "0.1.0", .commit = "3b9fa7b70d9a", .date = "2026-01-31T12:00:00Z", .preset = {}};
  f.model = "some model, 1B";
  f.architecture = "llama";
  f.parameters = 1'235'814'400;
  f.model_bytes = 799'862'784;
  f.caps.adapter = "Some GPU";
  f.caps.driver = "1.2";
  f.caps.provider = "dawn";
  f.caps.backend = "vulkan";
  f.lane = "fast";
  f.kv = "f16";
  Row prefill{.test = {.prompt = 512}, .rates = {900, 1000, 1100}, .ttft_seconds = 0.5};
  Row decode{.test = {.generate = 128}, .rates = {200}, .bandwidth_fraction = 0.25};
  report.rows = {prefill, decode};
  return report;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Report, MarkdownHasTheColumnsOfLlamaBench) {
  const std::string text = to_text(sample_report(), Format::kMarkdown);
  EXPECT_TRUE(contains(text, "| model | size | params | backend |")) << text;
  EXPECT_TRUE(
      contains(text,
               "| some model, 1B | 762.81 MiB | 1.24 B | dawn vulkan | fast | pp512 | 1000.00 ± 100.00 |"
               " 1000.00 | 900.00 | 1100.00 |"))
      << text;
  EXPECT_TRUE(contains(text, "| tg128 | 200.00 ± 0.00 |")) << text;
  EXPECT_TRUE(contains(text, "| pp512 | 500.00 |")) << text;
  EXPECT_TRUE(contains(text, "| 25.0 % |")) << text;
  EXPECT_FALSE(contains(text, "SYNTHETIC"));
  EXPECT_FALSE(contains(text, "INVESTIGATION"));
}

TEST(Report, StreamsHaveATableOfTheirOwn) {
  Report report = sample_report();
  EXPECT_FALSE(contains(to_text(report, Format::kMarkdown), "longest wait"));
  report.rows = {{.test = {.generate = 128, .depth = 512, .streams = 8},
                  .rates = {800},
                  .token_seconds = 0.01,
                  .longest_wait_seconds = 0.16}};
  const std::string text = to_text(report, Format::kMarkdown);
  EXPECT_TRUE(contains(text, "| tg128 x8 @ d512 | 800.00 ± 0.00 |")) << text;
  EXPECT_TRUE(contains(text, "| tg128 x8 @ d512 | 100.00 | 10.00 | 160.00 |")) << text;
  EXPECT_FALSE(contains(text, "TTFT")) << text;
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["tests"][0]["streams"], 8);
  EXPECT_EQ((*json)["tests"][0]["longest_wait_seconds"], 0.16);
}

TEST(Report, DraftsAreCounted) {
  Report report = sample_report();
  EXPECT_FALSE(contains(to_text(report, Format::kMarkdown), "drafted"));
  report.rows[1].drafts = {.drafted = 640, .accepted = 512};
  report.rows[1].step_times = {{.rows = 1, .seconds = 0.002}, {.rows = 4, .seconds = 0.0025}};
  const std::string text = to_text(report, Format::kMarkdown);
  EXPECT_TRUE(contains(text, "\ntg128, 640 tokens drafted, 512 of them right (80 %)\n")) << text;
  EXPECT_TRUE(contains(text, "\ntg128, steps of 1, 4 rows take 2.000, 2.500 ms (1.00, 1.25)\n")) << text;
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["tests"][0]["drafted_tokens"], 0);
  EXPECT_EQ((*json)["tests"][1]["drafted_tokens"], 640);
  EXPECT_EQ((*json)["tests"][1]["accepted_tokens"], 512);
}

TEST(Report, ItsPiecesAreTheWhole) {
  const Report report = sample_report();
  for (const Format format : {Format::kMarkdown, Format::kCsv, Format::kJson}) {
    EXPECT_EQ(head_text(report, format) + row_text(report, 0, format) + row_text(report, 1, format) +
                  tail_text(report, format),
              to_text(report, format));
  }
  EXPECT_TRUE(row_text(report, 1, Format::kMarkdown).starts_with("| some model, 1B |"));
}

TEST(Report, SyntheticWeightsAndInvestigationsAreLabelledEverywhere) {
  Report report = sample_report();
  report.facts.synthetic = true;
  report.intent = Intent::kInvestigate;
  const std::string text = to_text(report, Format::kMarkdown);
  EXPECT_TRUE(contains(text, "| some model, 1B (SYNTHETIC weights) |")) << text;
  EXPECT_TRUE(text.starts_with("INVESTIGATION, not to be quoted")) << text;
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ(get_bool(*json, "synthetic").value(), true);
  EXPECT_EQ(get_string(*json, "intent").value(), "investigate");
  const std::string csv = to_text(report, Format::kCsv);
  EXPECT_TRUE(contains(csv, "investigate")) << csv;
}

TEST(Report, RulesThatAreOffAreNamed) {
  Report report = sample_report();
  EXPECT_FALSE(contains(to_text(report, Format::kMarkdown), "rules off"));
  EXPECT_TRUE(contains(to_text(report, Format::kJson), "\"rules_off\": []"));
  report.facts.rules_off = {"fused_rope", "step_tail"};
  EXPECT_TRUE(contains(to_text(report, Format::kMarkdown), "\nrules off: fused_rope, step_tail\n\n| model |"))
      << to_text(report, Format::kMarkdown);
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["settings"]["rules_off"], Json::array({"fused_rope", "step_tail"}));
}

TEST(Report, APresetIsNamedWithWhatItSet) {
  Report report = sample_report();
  report.facts.origin.preset = {.name = "mine", .flags = {"--chunk=64"}, .left_out = {"--parallel=4"}};
  EXPECT_TRUE(contains(to_text(report, Format::kMarkdown),
                       "\npreset mine: --chunk=64 (without --parallel=4)\n\n| model |"));
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["preset"]["flags"], Json::array({"--chunk=64"}));
}

TEST(Report, AnotherSurfaceHasItsLoadsAndNoCeilings) {
  Report report = sample_report();
  report.facts.surface = "browser";
  report.facts.loads = {
      {.mode = "cold", .seconds = 3, .phases = {{"download", 2, 8'000'000}, {"compile", 1, 31}}},
      {.mode = "warm", .seconds = 1.5, .phases = {{"upload", 1.5, 8'000'000}}}};
  const std::string text = to_text(report, Format::kMarkdown);
  EXPECT_TRUE(contains(text, "load cold 3.00 s: download 2.00 s (7.63 MiB), compile 1.00 s (31 kernels)\n"))
      << text;
  EXPECT_TRUE(contains(text, "load warm 1.50 s: upload 1.50 s (7.63 MiB)\n")) << text;
  EXPECT_FALSE(contains(text, "ceilings")) << text;
  const auto json = parse_json(to_text(report, Format::kJson), "report");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["surface"], "browser");
  EXPECT_EQ((*json)["load"]["seconds"], 1.5);
  EXPECT_EQ((*json)["load"]["cold"]["phases"][1]["seconds"], 1.0);
  EXPECT_TRUE((*json)["ceilings"].is_null());
}

TEST(Report, AShareAboveOneIsNone) {
  std::string said;
  set_log_sink([&said](LogLevel, std::string_view line) { said += line; });
  EXPECT_EQ(checked_fraction(0.75, "tg128"), 0.75);
  EXPECT_EQ(said, "");
  EXPECT_EQ(checked_fraction(1.8, "tg128"), 0);
  set_log_sink({});
  EXPECT_TRUE(contains(said, "Test tg128 reads 1.80 times what this device was measured to read")) << said;
}

TEST(Report, JsonHasEverySample) {
  const auto json = parse_json(to_text(sample_report(), Format::kJson), "report");
  ASSERT_TRUE(json);
  const Json* tests = find(*json, "tests");
  ASSERT_TRUE(tests && tests->size() == 2);
  const Json& rates = *find((*tests)[0], "tokens_per_second");
  EXPECT_EQ(find(rates, "samples")->size(), 3u);
  EXPECT_EQ(get_number(rates, "median").value(), 1000);
  for (const char* key : {"device", "model", "settings", "load", "memory", "ceilings", "version", "commit",
                          "preset", "date", "intent"}) {
    EXPECT_TRUE(find(*json, key)) << key;
  }
}

TEST(Report, CsvHasOneHeaderAndALineATestWithAsManyFields) {
  const std::string text = to_text(sample_report(), Format::kCsv);
  const std::vector<std::string> lines = split(text, '\n');
  ASSERT_EQ(lines.size(), 4u) << text;  // the last is empty
  EXPECT_TRUE(lines[0].starts_with("test,prompt,generate,depth,tokens_per_second.median")) << text;
  EXPECT_TRUE(contains(lines[1], "\"some model, 1B\"")) << text;
  // The model's name has the one comma that does not separate.
  for (int i = 1; i <= 2; ++i)
    EXPECT_EQ(split(lines[i], ',').size(), split(lines[0], ',').size() + 1) << lines[i];
}

TEST(Report, FormatsAreNamed) {
  EXPECT_EQ(parse_format("md").value(), Format::kMarkdown);
  EXPECT_EQ(parse_format("csv").value(), Format::kCsv);
  EXPECT_EQ(parse_format("json").value(), Format::kJson);
  EXPECT_FALSE(parse_format("xml"));
}

}  // namespace
}  // namespace doppler::bench
