// The proof that a change of the host's code leaves the GPU's work unchanged: every plan that models x lanes x
// capability fixtures give, as a digest, against the committed ones. It runs no plan, so it needs no GPU. Renewed by
// tools/plan_digests, which calls this program's other verbs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/parallel.h"
#include "cases.h"
#include "digest_file.h"
#include "formats/architectures/architecture.h"

namespace doppler::plans {
namespace {

constexpr const char* kUsage =
    "plan_digest_test                                    compares all digests with tests/plans/digests.txt\n"
    "plan_digest_test list [MODEL]                       prints the digests of all models or of one\n"
    "plan_digest_test dump MODEL LANE FIXTURE [PLAN]     prints the commands of these plans\n"
    "plan_digest_test wgsl MODEL LANE FIXTURE PLAN AT    prints the WGSL of command AT\n"
    "plan_digest_test write MODEL LANE FIXTURE FOLDER    writes the WGSL of each pipeline there\n";
constexpr size_t kMostPrinted = 20;

std::string committed_path() { return std::string(DOPPLER_SOURCE_DIR) + "/tests/plans/digests.txt"; }

void complain(const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); }

// The plan that chooses one token of a step of many rows has logits of one row. A dispatch of more rows would write
// over other buffers.
bool chooses_one(std::string_view plan) {
  return !plan.starts_with("draft") && (plan.ends_with(".greedy") || plan.ends_with(".sample"));
}
Result<void> check_logits_rows(gpu::PlanText& text, const gpu::Plan& plan) {
  if (!chooses_one(plan.name)) return {};
  for (const gpu::CommandText& command : text.commands(plan)) {
    const bool writes = std::ranges::any_of(
        command.bindings, [](const std::string& binding) { return binding.starts_with("rw logits+"); });
    if (writes && command.grid.contains("rows")) {
      return fail(ErrorKind::kInternal, "%s of the plan %s writes logits for all rows of the step (%s).",
                  command.label.c_str(), plan.name.c_str(), command.grid.c_str());
    }
  }
  return {};
}

Result<Digests> digests_of(const std::string& model) {
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint, open_model(model));
  Digests digests;
  Result<void> checked;
  for (const std::string_view lane : lane_names(model)) {
    for (const Fixture& fixture : fixtures()) {
      const auto key = [&](std::string_view plan) {
        return DigestKey{model, std::string(lane), std::string(fixture.name), std::string(plan)};
      };
      record(
          {.model = model, .lane = lane, .fixture = &fixture}, *checkpoint,
          [&](gpu::PlanText& text, std::span<const gpu::Plan> plans) {
            for (const gpu::Plan& plan : plans) {
              if (checked) checked = check_logits_rows(text, plan);
              digests[key(plan.name)] = format_text("%s/%zu", text.digest(plan).c_str(), plan.entries.size());
            }
          },
          [&](std::string_view kind, const std::string& sentence) {
            digests[key(kind)] = "refused: " + sentence;
          });
      DP_CHECK_WHILE(checked, "recording %s, lane %s, fixture %s", model.c_str(), std::string(lane).c_str(),
                     std::string(fixture.name).c_str());
    }
  }
  return digests;
}

// Empty on an error, which was told.
Digests all_digests(std::vector<std::string> models) {
  std::ranges::reverse(models);  // the large ones first
  Digests all;
  bool failed = false;
  std::mutex mutex;
  parallel_for(models.size(), [&](size_t i) {
    auto digests = digests_of(models[i]);
    const std::lock_guard lock(mutex);
    if (!digests) {
      complain(digests.error().message());
      failed = true;
    } else {
      all.merge(*digests);
    }
  });
  return failed ? Digests() : all;
}

int list(const std::string& model) {
  const Digests digests = all_digests(model.empty() ? model_names() : std::vector{model});
  std::fputs(to_text(digests).c_str(), stdout);
  return digests.empty() ? 1 : 0;
}

// Counts the listed families without a golden model. Encoders have golden tests of their own.
size_t count_families_without_model() {
  std::set<std::string> shown;
  for (const std::string& model : model_names()) {
    const auto checkpoint = open_model(model);
    if (!checkpoint) continue;
    if (const auto config = formats::read_config(**checkpoint)) shown.insert(config->family);
  }
  size_t without = 0;
  for (const formats::Architecture* row : formats::all_architectures()) {
    if (row->bidirectional || shown.contains(std::string(row->family))) continue;
    complain(format_text("Family %s has no golden model: tests/data/families_%s.tar.xz is missing.",
                         std::string(row->family).c_str(), std::string(row->family).c_str()));
    ++without;
  }
  return without;
}

int compare() {
  std::ifstream file(committed_path(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Digests committed = from_text(text);
  const Digests made = all_digests(model_names());
  size_t wrong = 0;
  const auto tell = [&](const DigestKey& key, const std::string& was, const std::string& is) {
    if (++wrong > kMostPrinted) return;
    complain(format_text("Plan %s of %s, lane %s, fixture %s: %s was committed, %s is made.",
                         key.plan.c_str(), key.model.c_str(), key.lane.c_str(), key.fixture.c_str(),
                         was.c_str(), is.c_str()));
  };
  for (const auto& [key, digest] : made) {
    const auto found = committed.find(key);
    if (found == committed.end()) {
      tell(key, "nothing", digest);
    } else if (found->second != digest) {
      tell(key, found->second, digest);
    }
  }
  for (const auto& [key, digest] : committed) {
    if (!made.contains(key)) tell(key, digest, "nothing");
  }
  const size_t without = count_families_without_model();
  std::printf("%zu plans, %zu of them not as committed\n", made.size(), wrong);
  if (wrong == 0 && without == 0 && !made.empty()) return 0;
  if (wrong == 0) return 1;
  complain(
      "What changed: tools/plan_digests/plan_digests.py --build BUILD_DIR [--against OTHER_BUILD_DIR]; "
      "--renew accepts it.");
  return 1;
}

void print(const gpu::CommandText& command) {
  std::printf("%s %s\n  grid %s\n", command.label.c_str(), command.op_label.c_str(), command.grid.c_str());
  for (const std::string& binding : command.bindings) std::printf("  %s\n", binding.c_str());
  if (command.pipeline.empty()) return;
  std::printf("  pipeline %s\n  wgsl %s\n  params %s\n", command.pipeline.c_str(), command.wgsl.c_str(),
              command.params.c_str());
  for (const std::string& constant : command.constants) std::printf("  const %s\n", constant.c_str());
}

struct DumpOptions {
  std::string plan;           // empty: all
  size_t wgsl_of = SIZE_MAX;  // the number of a command: only its WGSL
};

int dump(const Case& wanted, const DumpOptions& options) {
  const auto checkpoint = open_model(wanted.model);
  if (!checkpoint) {
    complain(checkpoint.error().message());
    return 1;
  }
  record(
      wanted, **checkpoint,
      [&](gpu::PlanText& text, std::span<const gpu::Plan> plans) {
        for (const gpu::Plan& plan : plans) {
          if (!options.plan.empty() && options.plan != plan.name) continue;
          if (options.wgsl_of < plan.entries.size()) {
            std::printf("%s\n", std::string(text.wgsl(plan, options.wgsl_of)).c_str());
            continue;
          }
          std::printf("plan %s, up to %u rows, digest %s\n", plan.name.c_str(), plan.max_rows,
                      text.digest(plan).c_str());
          for (const gpu::CommandText& command : text.commands(plan)) print(command);
        }
      },
      [&](std::string_view kind, const std::string& sentence) {
        std::printf("plan %.*s is refused: %s\n", static_cast<int>(kind.size()), kind.data(),
                    sentence.c_str());
      });
  return 0;
}

// For compilers that need no GPU: KERNEL.PIPELINE.wgsl each.
int write(const Case& wanted, const std::string& folder) {
  const auto checkpoint = open_model(wanted.model);
  if (!checkpoint) {
    complain(checkpoint.error().message());
    return 1;
  }
  int status = 0;
  record(
      wanted, **checkpoint,
      [&](gpu::PlanText& text, std::span<const gpu::Plan> plans) {
        for (const gpu::Plan& plan : plans) {
          const std::vector<gpu::CommandText> commands = text.commands(plan);
          for (size_t i = 0; i < commands.size(); ++i) {
            if (commands[i].pipeline.empty()) continue;
            std::string path = folder + "/" + commands[i].label + "." + commands[i].pipeline + ".wgsl";
            std::ofstream(path, std::ios::binary) << text.wgsl(plan, i);
          }
        }
      },
      [&](std::string_view, const std::string& sentence) {
        complain(sentence);
        status = 1;
      });
  return status;
}

int run(std::span<char*> arguments) {
  set_log_level(LogLevel::kError);
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (words.empty()) return compare();
  const std::string verb = words[0];
  words.resize(6);
  if (verb == "list") return list(words[1]);
  if (verb == "dump" || verb == "wgsl" || verb == "write") {
    const auto fixture = std::ranges::find(fixtures(), std::string_view(words[3]), &Fixture::name);
    const std::optional<int64_t> at = parse_int(words[5]);
    if (fixture != fixtures().end() && verb == "write" && !words[4].empty()) {
      return write({.model = words[1], .lane = words[2], .fixture = &*fixture}, words[4]);
    }
    if (fixture != fixtures().end() && (verb == "dump" || (verb == "wgsl" && at))) {
      return dump({.model = words[1], .lane = words[2], .fixture = &*fixture},
                  {.plan = words[4], .wgsl_of = verb == "dump" ? SIZE_MAX : static_cast<size_t>(*at)});
    }
  }
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace
}  // namespace doppler::plans

int main(int count, char** arguments) { return doppler::plans::run({arguments, static_cast<size_t>(count)}); }
