// The models and lanes, and their loading on a device that only records; see cases.h.
#include "cases.h"

#include <algorithm>
#include <filesystem>

#include "formats/file_set_native.h"
#include "formats/synth/synthetic_model.h"
#include "gpu/recording_device.h"
#include "kernels/persistent/probe.h"
#include "model/device_model.h"

namespace doppler::plans {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLanes[] = {"exact", "fast",   "portable",  "subgroups",
                                       "dp4a",  "matrix", "persistent"};
// Archives whose models are recorded in all lanes. For other archives the lanes exact and fast show the plans; the
// lanes between choose the same for all families.
constexpr std::string_view kInAllLanes[] = {"families_llama", "families_generated", "families_gemma3",
                                            "families_qwen3"};
constexpr std::string_view kSynthetic[] = {"llama-3.1-8b:q4_k_m", "llama-3.2-1b:q4_k_m", "gemma-3-1b:q4_k_m"};
constexpr std::string_view kShipped = "storyteller";
constexpr std::string_view kGoldenPrefix = "families_";
constexpr uint32_t kGoldenCtxLen = 64;  // what tests/golden uses, and the models were made for

template <class T>
T now(Task<T> task) {  // files are mapped and the device only records: nothing waits
  task.start();
  return task.take();
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(GOLDEN_DIR)) {
    if (entry.path().filename() != "refs.safetensors") continue;
    std::string name = fs::relative(entry.path().parent_path(), GOLDEN_DIR).generic_string();
    if (name.starts_with(kGoldenPrefix)) names.push_back(std::move(name));  // others show drafts and adapters
  }
  std::ranges::sort(names);
  names.emplace_back(kShipped);
  for (const std::string_view name : kSynthetic) names.emplace_back(name);
  return names;
}

std::span<const std::string_view> lane_names(std::string_view model) {
  const std::string_view archive = model.substr(0, model.find('/'));
  const bool in_all = std::ranges::find(kInAllLanes, archive) != std::end(kInAllLanes);
  return in_all || !model.starts_with(kGoldenPrefix) ? std::span(kLanes) : std::span(kLanes).first(2);
}

Result<std::unique_ptr<formats::Checkpoint>> open_model(std::string_view name) {
  std::unique_ptr<formats::FileSet> files;
  if (name.starts_with(kGoldenPrefix)) {
    DP_TRY(files, formats::open_file_set(std::string(GOLDEN_DIR) + "/" + std::string(name)));
  } else if (name == kShipped) {
    DP_TRY(files, formats::open_file_set(std::string(DOPPLER_SOURCE_DIR) + "/models/storyteller.gguf"));
  } else {
    DP_TRY(std::unique_ptr<formats::SyntheticModel> made, formats::SyntheticModel::make(name));
    files = formats::synthetic_file_set(std::move(made));
  }
  return now(formats::open_checkpoint(std::move(files)));
}

namespace {

// Visits the plans of steps that draft, which are made when a generation first asks for them: those of the next-token
// layer, or for a few models those of the drafter lookup.
void visit_drafts(model::DeviceModel& runner, const Case& wanted,
                  const std::function<void(std::span<const gpu::Plan>)>& visit) {
  const bool is_large = !wanted.model.starts_with(kGoldenPrefix);
  if (!runner.has_drafts() && !is_large) return;
  const model::Drafter drafter = runner.has_drafts() ? model::Drafter::kNextLayer : model::Drafter::kLookup;
  for (const bool greedy : {true, false}) {
    const model::DraftNeed need{.drafter = drafter, .greedy = greedy};
    if (!runner.one()) continue;
    while (runner.one()->may_prepare_drafts(need, 1) && now(runner.one()->prepare_drafts(need, 1))) {
    }
    if (runner.one()->draft_rows(need).empty()) continue;
    for (const gpu::Plan* plan : runner.draft_plans().plans(need)) visit({plan, 1});
  }
}

}  // namespace

void record(const Case& wanted, const formats::Checkpoint& checkpoint, const PlanVisitor& visit,
            const std::function<void(std::string_view kind, const std::string& sentence)>& refused) {
  for (const std::string_view kind : {"generation", "logits"}) {
    model::RunnerOptions options;
    auto policy = kernels::make_policy(wanted.lane);
    if (!policy) return refused(kind, policy.error().sentence());
    options.policy = std::move(*policy);
    options.all_logits = options.hidden = kind == "logits";
    const bool exact = wanted.lane == "exact";
    options.cache_format = exact ? kernels::CacheFormat::kF32 : kernels::CacheFormat::kF16;
    if (wanted.model.starts_with(kGoldenPrefix)) options.ctx_len = kGoldenCtxLen;

    gpu::RecordingDevice device(wanted.fixture->caps,
                                kernels::words_of_co_resident_groups(wanted.fixture->co_resident_groups));
    auto runner = now(model::DeviceModel::load(device, checkpoint, std::move(options), {}));
    if (!runner) {
      refused(kind, runner.error().sentence());
      continue;
    }
    gpu::PlanText text(device);
    visit(text, (*runner)->plans());
    if (kind == "generation") visit_drafts(**runner, wanted, [&](auto plans) { visit(text, plans); });
  }
}

}  // namespace doppler::plans
