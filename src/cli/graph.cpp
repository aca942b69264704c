// doppler graph: a model as mathematics, the rules that lowered it to dispatches, those refused with their reasons, and
// the dispatches that came out. Reads the model's headers and the device's capabilities; loads and runs nothing.
#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/rules_report.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "engine/model_options.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"
#include "gpu/plan_text.h"
#include "graph/describe.h"
#include "kernels/persistent/probe.h"

namespace doppler::cli {
namespace {

struct GraphFlags {
  ModelFlags model;
  std::vector<std::string> words;
  std::string plan;
  bool json = false;
};

// The model recorded for a device with these capabilities.
struct Recorded {
  gpu::Caps caps;
  std::string name;
  std::unique_ptr<gpu::RecordingDevice> device;
  std::unique_ptr<model::DeviceModel> runner;
  const gpu::Plan* plan = nullptr;
  const lowering::PlanReport* report = nullptr;
};

// name: empty stands for the plan of the first decode step.
Result<void> choose_plan(Recorded& recorded, std::string name) {
  if (name.empty()) name = recorded.runner->decode_plan(/*greedy=*/true, 1).name;
  std::string known;
  for (const gpu::Plan& plan : recorded.runner->plans()) {
    known += (known.empty() ? "" : ", ") + plan.name;
    if (plan.name == name) recorded.plan = &plan;
  }
  for (const lowering::PlanReport& report : recorded.runner->reports()) {
    if (report.plan == name) recorded.report = &report;
  }
  if (recorded.plan && recorded.report) return {};
  return fail(ErrorKind::kInvalidInput, "There is no plan \"%s\"; the plans of this model are %s.",
              printable(name).c_str(), known.c_str());
}

Result<Recorded> record(const GraphFlags& flags) {
  const LoadOptions& load = flags.model.load;
  Recorded out;
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint,
         open_named_checkpoint(flags.model.model, flags.model.synthetic));
  DP_TRY(const std::unique_ptr<gpu::Device> real,
         run_now(gpu::Device::open({.provider = load.webgpu, .adapter = load.device, .cache_dir = {}})));
  out.caps = real->caps();
  DP_TRY(model::RunnerOptions options, engine::runner_options(load));
  if (!flags.model.no_tuning) {
    options.policy.tuning = engine::load_tuning(user_cache_dir(), engine::tuning_key(out.caps, options));
    engine::allow_tuned_lane(*checkpoint, options.policy);
  }
  std::vector<gpu::KnownWord> words;
  if (options.policy.allows(kernels::Lane::kPersistent)) {
    DP_TRY(const uint32_t groups, gpu::run_to_completion(*real, kernels::count_co_resident(*real)));
    words = kernels::words_of_co_resident_groups(groups);
  }
  std::unique_ptr<formats::Checkpoint> projector;
  if (options.images) {
    DP_TRY(projector, open_named_projector(*checkpoint, load.mmproj));
    options.projector = projector.get();
  }
  out.device = std::make_unique<gpu::RecordingDevice>(out.caps, std::move(words));
  DP_TRY(out.runner, gpu::run_to_completion(*out.device, model::DeviceModel::load(*out.device, *checkpoint,
                                                                                  std::move(options), {})));
  out.name = checkpoint->name();
  DP_CHECK(choose_plan(out, flags.plan));
  return out;
}

Json nodes_json(const graph::Graph& graph) {
  Json nodes = Json::array();
  for (const graph::Node& node : graph.nodes()) {
    Json inputs = Json::array(), outputs = Json::array();
    for (const graph::Value& value : node.inputs) inputs.push_back(value.index);
    for (const graph::Value& value : node.outputs) {
      outputs.push_back({{"value", value.index}, {"shape", {"R", graph.info(value).columns}}});
    }
    nodes.push_back({{"op", graph::op_name(node.kind())},
                     {"label", node.op_label},
                     {"inputs", std::move(inputs)},
                     {"outputs", std::move(outputs)},
                     {"text", graph::describe(graph, node)}});
  }
  return nodes;
}

Json dispatches_json(Recorded& recorded) {
  gpu::PlanText text(*recorded.device);
  Json out = Json::array();
  for (const gpu::CommandText& command : text.commands(*recorded.plan)) {
    out.push_back({{"kernel", command.label},
                   {"op", command.op_label},
                   {"grid", command.grid},
                   {"bindings", command.bindings},
                   {"pipeline", command.pipeline}});
  }
  return out;
}

void print(Recorded& recorded) {
  const graph::Graph& graph = recorded.runner->graph();
  std::printf("%s on %s (%s), lane %s, plan %s\n\n", printable(recorded.name, 4096).c_str(),
              recorded.caps.adapter.c_str(), recorded.caps.provider.c_str(),
              recorded.runner->options().policy.name.c_str(), recorded.plan->name.c_str());
  Table nodes({"node", "shape"});
  for (const graph::Node& node : graph.nodes()) {
    nodes.add({graph::describe(graph, node), graph::shape_text(graph, node)});
  }
  std::printf("%s\n", nodes.text().c_str());
  std::printf("%s\n", rules_text(*recorded.report, recorded.runner->options().rules).c_str());
  gpu::PlanText text(*recorded.device);
  Table dispatches({">#", "kernel", "op", "grid"});
  uint32_t number = 0;
  for (const gpu::CommandText& command : text.commands(*recorded.plan)) {
    dispatches.add({std::to_string(number++), command.label, command.op_label, command.grid});
  }
  std::printf("%s", dispatches.text().c_str());
}

}  // namespace

int graph_verb(std::span<const std::string> arguments) {
  GraphFlags flags;
  Args args("doppler graph [flags] [MODEL]",
            "Shows a model as mathematics, the rules that lowered it to dispatches, the refused rules with "
            "reasons, and the "
            "dispatches. Nothing is loaded.");
  args.words("MODEL", &flags.words);
  args.text("plan", 0, "NAME", "which plan's rules and dispatches (default: that of the first decode step)",
            &flags.plan);
  args.flag("json", 0, "print one JSON object: nodes, rules, dispatches", &flags.json);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.words.size() > 1 || (!flags.words.empty() && !flags.model.model.empty())) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Several models were given; the graph of one at a time is shown."));
  }
  if (!flags.words.empty()) flags.model.model = flags.words[0];
  auto recorded = record(flags);
  if (!recorded) return exit_failed(recorded.error());
  if (!flags.json) {
    print(*recorded);
    return 0;
  }
  const Json out = {{"model", recorded->name},
                    {"device", {{"adapter", recorded->caps.adapter}, {"provider", recorded->caps.provider}}},
                    {"lane", recorded->runner->options().policy.name},
                    {"plan", recorded->plan->name},
                    {"nodes", nodes_json(recorded->runner->graph())},
                    {"rules", rules_json(*recorded->report, recorded->runner->options().rules)},
                    {"dispatches", dispatches_json(*recorded)}};
  std::printf("%s\n", to_text(out, 2).c_str());
  return 0;
}

}  // namespace doppler::cli
