#include "web/web_adapters.h"

#include "base/json.h"
#include "web/web_model.h"
#include "web/web_options.h"

namespace doppler::web {
namespace {

Result<engine::AdapterSources::File> read_source(const Json& json) {
  const Json* given = find(json, "files");
  DP_TRY(WebFiles files, read_files(given ? *given : Json::object()));
  DP_TRY(auto name, get_string(json, "name"));
  DP_TRY(const auto scale, get_number(json, "scale"));
  return engine::AdapterSources::File{.files = make_web_file_set(std::move(files)),
                                      .name = std::move(name).value_or(""),
                                      .scale = static_cast<float>(scale.value_or(1))};
}

Json described(const AdapterInfo& info) {
  return {{"name", info.name}, {"path", info.path}, {"rank", info.rank}, {"scale", info.scale}};
}

}  // namespace

Result<engine::AdapterSources> read_adapter_sources(const Json& json) {
  engine::AdapterSources out;
  DP_TRY(const auto slots, get_integer(json, "slots"));
  DP_TRY(const auto rank, get_integer(json, "rank"));
  out.slots = static_cast<uint32_t>(slots.value_or(0));
  out.rank = static_cast<uint32_t>(rank.value_or(0));
  if (const Json* list = find(json, "list")) {
    for (const Json& entry : *list) {
      DP_TRY(engine::AdapterSources::File file, read_source(entry));
      out.files.push_back(std::move(file));
    }
  }
  return out;
}

Result<std::vector<AdapterUse>> read_adapter_uses(const Json& list) {
  std::vector<AdapterUse> out;
  for (const Json& entry : list) {
    DP_TRY(auto name, get_string(entry, "name"));
    DP_TRY(const auto scale, get_number(entry, "scale"));
    out.push_back({.name = std::move(name).value_or(""), .scale = static_cast<float>(scale.value_or(1))});
  }
  return out;
}

Task<Result<Json>> WebModel::change_adapters(Json request) {
  if (!loaded_) co_return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  DP_CO_TRY(const auto unload, get_string(request, "unload"));
  if (unload) DP_CO_CHECK(adapters_.remove(*unload));
  if (const Json* load = find(request, "load")) {
    DP_CO_TRY(engine::AdapterSources::File file, read_source(*load));
    auto opening = engine::open_fitted(std::move(file.files), *loaded_->runner);
    DP_CO_TRY(auto adapter, co_await std::move(opening));
    adapters_.add({.name = std::move(file.name), .scale = file.scale, .adapter = std::move(adapter)});
  }
  Json list = Json::array();
  for (const AdapterInfo& info : adapters_.list()) list.push_back(described(info));
  co_return Json({{"adapters", std::move(list)}});
}

}  // namespace doppler::web
