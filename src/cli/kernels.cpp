// doppler kernels: all variants of all operations and whether this device can use them; with a model, which
// variant each of its operations got and why the better ones were refused, and the rules that made its decode step.
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/rules_report.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "kernels/catalogue.h"
#include "kernels/tuning.h"

namespace doppler::cli {
namespace {

// Whose rules are printed; the JSON has those of all plans.
constexpr const char* kExplainedPlan = "decode.greedy";

struct KernelsFlags {
  ModelFlags model;
  std::vector<std::string> words;
  bool explain = false, json = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Json device_json(const gpu::Caps& caps) { return {{"adapter", caps.adapter}, {"provider", caps.provider}}; }

int list(const KernelsFlags& flags) {
  auto policy = kernels::make_policy(flags.model.load.lane);
  if (!policy) return exit_failed(policy.error());
  auto device = run_now(gpu::Device::open(
      {.provider = flags.model.load.webgpu, .adapter = flags.model.load.device, .cache_dir = {}}));
  if (!device) return exit_failed(device.error());
  const gpu::Caps& caps = (*device)->caps();
  const std::vector<kernels::CatalogueRow> rows = kernels::list_variants(caps, *policy);
  if (flags.json) {
    Json list = Json::array();
    for (const auto& row : rows) {
      Json item = {{"operation", row.operation},
                   {"variant", row.variant},
                   {"lane", kernels::lane_name(row.lane)},
                   {"needs", row.needs},
                   {"usable", row.refusal.empty()}};
      if (!row.refusal.empty()) item["refusal"] = row.refusal;
      list.push_back(std::move(item));
    }
    const Json out = {{"device", device_json(caps)},
                      {"lane", flags.model.load.lane},
                      {"typical_shape", kernels::typical_shape_text()},
                      {"variants", std::move(list)}};
    std::printf("%s\n", to_text(out, 2).c_str());
    return 0;
  }
  Table table({"variant", "lane", "needs", "on this device"});
  const kernels::CatalogueRow* chosen = nullptr;
  for (const auto& row : rows) {
    // The first row of an operation that can be used is the one that is used.
    const bool is_choice = row.refusal.empty() && (!chosen || chosen->operation != row.operation);
    if (is_choice) chosen = &row;
    table.add({row.variant, kernels::lane_name(row.lane), joined(row.needs),
               !row.refusal.empty() ? "no: " + row.refusal
               : is_choice          ? "CHOSEN"
                                    : "usable"});
  }
  std::printf(
      "%s (%s), lane %s; best first, for a typical shape (%s).\n\n%s\n"
      "--kernel OPERATION=VARIANT forces one; --explain MODEL shows what a model's own shapes get.\n",
      caps.adapter.c_str(), caps.provider.c_str(), flags.model.load.lane.c_str(),
      kernels::typical_shape_text(), table.text().c_str());
  return 0;
}

// The measurement by which tuning made a choice; null if the table decided.
const kernels::TunedChoice* tuned_of(const model::DeviceModel& runner, const kernels::Choice& choice) {
  const auto& tuning = runner.options().policy.tuning;
  const kernels::TunedChoice* tuned =
      tuning && !choice.forced ? tuning->find(choice.operation, choice.shape) : nullptr;
  return tuned && tuned->variant == choice.variant ? tuned : nullptr;
}

// "matvec.q4_k.dp4a slices=8 (tuned: 3.1 % faster step than matvec.q4_k.cpu)".
std::string variant_text(const model::DeviceModel& runner, const kernels::Choice& choice) {
  std::string text = choice.variant;
  for (const kernels::ChosenConstant& constant : choice.constants) {
    if (constant.value != constant.standard)
      text += format_text(" %s=%u", constant.name.c_str(), constant.value);
  }
  if (choice.forced) text += " (forced)";
  if (const kernels::TunedChoice* tuned = tuned_of(runner, choice)) {
    const std::string table = choice.table_variant.empty() ? "the table's constants" : choice.table_variant;
    text += format_text(" (tuned: a step of %.1f us instead of %.1f us with %s)", tuned->seconds * 1e6,
                        tuned->table_seconds * 1e6, table.c_str());
  }
  if (!choice.tuning_refused.empty()) text += " (tuning not used: " + choice.tuning_refused + ")";
  return text;
}

Json choice_json(const model::DeviceModel& runner, const kernels::Choice& choice) {
  Json refused = Json::array();
  for (const auto& refusal : choice.refused)
    refused.push_back({{"variant", refusal.variant}, {"reason", refusal.reason}});
  Json out = {{"operation", choice.operation}, {"shape", choice.shape},   {"variant", choice.variant},
              {"uses", choice.uses},           {"forced", choice.forced}, {"refused", std::move(refused)}};
  for (const kernels::ChosenConstant& constant : choice.constants)
    out["constants"][constant.name] = constant.value;
  if (const kernels::TunedChoice* tuned = tuned_of(runner, choice)) {
    out["tuned"] = {{"instead_of", choice.table_variant.empty() ? choice.variant : choice.table_variant},
                    {"seconds", tuned->seconds},
                    {"table_seconds", tuned->table_seconds}};
  }
  if (!choice.tuning_refused.empty()) out["tuning_refused"] = choice.tuning_refused;
  return out;
}

int explain(const KernelsFlags& flags) {
  auto model = load_named_model(flags.model);
  if (!model) return exit_failed(model.error());
  const auto& runner = *Model::Impl::of(*model).loaded->runner;
  const gpu::Caps& caps = Model::Impl::of(*model).device->caps();
  if (flags.json) {
    Json choices = Json::array();
    for (const kernels::Choice& choice : runner.choices()) choices.push_back(choice_json(runner, choice));
    Json plans = Json::array();
    for (const lowering::PlanReport& report : runner.reports()) {
      plans.push_back({{"plan", report.plan}, {"rules", rules_json(report, runner.options().rules)}});
    }
    const Json out = {{"device", device_json(caps)},
                      {"lane", flags.model.load.lane},
                      {"model", {{"name", model->info().name}, {"synthetic", model->info().synthetic}}},
                      {"choices", std::move(choices)},
                      {"plans", std::move(plans)}};
    std::printf("%s\n", to_text(out, 2).c_str());
    return 0;
  }
  std::printf("%s%s on %s (%s), lane %s\n\n", printable(model->info().name).c_str(),
              model->info().synthetic ? " (SYNTHETIC)" : "", caps.adapter.c_str(), caps.provider.c_str(),
              flags.model.load.lane.c_str());
  Table table({"operation", "shape", ">uses", "variant", "refused before it"});
  for (const kernels::Choice& choice : runner.choices()) {
    std::vector<std::string> row = {choice.operation, choice.shape, std::to_string(choice.uses),
                                    variant_text(runner, choice)};
    if (choice.refused.empty()) table.add(row);
    for (const kernels::Refusal& refusal : choice.refused) {
      row.resize(4);
      row.push_back(refusal.variant + ": " + refusal.reason);
      table.add(row);
      row.assign(4, "");
    }
  }
  std::printf("%s", table.text().c_str());
  for (const lowering::PlanReport& report : runner.reports()) {
    if (report.plan != kExplainedPlan) continue;
    std::printf("\nRules of the plan %s (doppler graph --plan NAME: of another one)\n\n%s", kExplainedPlan,
                rules_text(report, runner.options().rules).c_str());
  }
  return 0;
}

}  // namespace

int kernels_verb(std::span<const std::string> arguments) {
  KernelsFlags flags;
  Args args("doppler kernels [flags] [--explain [MODEL]]",
            "Lists all kernel variants and whether this device can use them; with a model, the ones it uses "
            "and why.");
  args.words("MODEL", &flags.words);
  args.flag("explain", 0, "explain the choices for MODEL (default: the shipped model)", &flags.explain);
  args.flag("json", 0, "print one JSON object", &flags.json);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.words.size() > 1 || (!flags.words.empty() && !flags.model.model.empty())) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Several models were given; one is explained at a time."));
  }
  if (!flags.words.empty()) flags.model.model = flags.words[0];
  const bool has_model = !flags.model.model.empty() || !flags.model.synthetic.empty();
  return flags.explain || has_model ? explain(flags) : list(flags);
}

}  // namespace doppler::cli
