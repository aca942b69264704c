#include "engine/adapters.h"

#include <algorithm>

#include "formats/adapters/whole_tensors.h"

namespace doppler::engine {
namespace {

constexpr uint32_t kUsualSlots = 8, kUsualRank = 16;  // as vLLM has it

}  // namespace

Task<Result<std::shared_ptr<const formats::FittedAdapter>>> open_fitted(
    std::unique_ptr<formats::FileSet> files, const model::DeviceModel& runner) {
  auto opening = formats::open_adapter(std::move(files));
  DP_CO_TRY(const formats::Adapter adapter, co_await std::move(opening));
  DP_CO_TRY(formats::FittedAdapter fitted, formats::fit_adapter(adapter, runner.config()));
  auto held = std::make_shared<const formats::FittedAdapter>(std::move(fitted));
  DP_CO_CHECK(
      runner.adapters().check(std::make_shared<model::AdapterMix>(model::AdapterMix{.parts = {{held}}})));
  co_return held;
}

Task<Result<std::vector<NamedAdapter>>> open_adapters(AdapterSources sources, formats::Checkpoint& checkpoint,
                                                      model::AdapterRoom& room) {
  std::vector<NamedAdapter> named;
  DP_CO_TRY(const formats::ModelConfig config, formats::read_config(checkpoint));
  room.rank = sources.rank;
  const formats::FittedAdapter* replacing = nullptr;
  for (AdapterSources::File& file : sources.files) {
    auto opening = formats::open_adapter(std::move(file.files));
    DP_CO_TRY(const formats::Adapter adapter, co_await std::move(opening));
    DP_CO_TRY(formats::FittedAdapter fitted, formats::fit_adapter(adapter, config));
    const bool is_named = !file.name.empty();
    if (!is_named && !fitted.replaced.empty()) {
      if (replacing) {
        co_return fail(ErrorKind::kUnsupported,
                       "The adapters %s and %s both replace whole tensors; one of them can.",
                       replacing->name.c_str(), fitted.name.c_str());
      }
      formats::put_whole_tensors(fitted, checkpoint);
    }
    auto held = std::make_shared<const formats::FittedAdapter>(std::move(fitted));
    if (!held->replaced.empty()) replacing = held.get();
    if (is_named) {
      room.rank = std::max(room.rank, held->rank());
      named.push_back({.name = std::move(file.name), .scale = file.scale, .adapter = std::move(held)});
    } else {
      room.first.push_back({.adapter = std::move(held), .scale = file.scale});
    }
  }
  room.everywhere = !named.empty() || sources.slots != 0;
  room.slots = sources.slots != 0 ? sources.slots : room.everywhere ? kUsualSlots : 1;
  if (room.everywhere && room.rank == 0) room.rank = kUsualRank;
  co_return named;
}

}  // namespace doppler::engine
