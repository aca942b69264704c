// doppler list: the models of the store, and downloads that are not finished.
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "store/model_store.h"

namespace doppler::cli {
namespace {

Json listing_json(const store::StoreListing& listing, const std::string& folder) {
  Json models = Json::array(), unfinished = Json::array();
  for (const store::StoredModel& model : listing.models) {
    Json item = store::record_json(model.record);
    item["name"] = model.name;
    item["path"] = model.load_path();
    item["bytes"] = model.record.bytes();
    models.push_back(std::move(item));
  }
  for (const store::UnfinishedModel& model : listing.unfinished) {
    unfinished.push_back({{"name", model.name},
                          {"source", model.source},
                          {"bytes_done", model.bytes_done},
                          {"bytes_total", model.bytes_total ? Json(*model.bytes_total) : Json()}});
  }
  return {{"store", folder},
          {"models", std::move(models)},
          {"unfinished", std::move(unfinished)},
          {"problems", listing.problems}};
}

}  // namespace

int list_verb(std::span<const std::string> arguments) {
  bool json = false;
  Args args("doppler list [flags]", "Lists the models of the store, and downloads that are not finished.");
  args.flag("json", 0, "print one JSON object", &json);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());
  const store::StoreListing listing = models->list();
  if (json) {
    std::printf("%s\n", to_text(listing_json(listing, models->folder()), 2).c_str());
    return 0;
  }
  Table table({"name", ">size", "kind", "stored", "source"});
  for (const store::StoredModel& model : listing.models) {
    table.add({model.name, format_bytes(model.record.bytes()), model.record.kind,
               model.record.stored.substr(0, 10), printable(model.record.source, 120)});
  }
  for (const store::UnfinishedModel& model : listing.unfinished) {
    const std::string done = format_bytes(model.bytes_done) +
                             (model.bytes_total ? " of " + format_bytes(*model.bytes_total) : " so far");
    table.add({model.name, done, "unfinished", "", printable(model.source, 120)});
  }
  for (const std::string& problem : listing.problems) std::fprintf(stderr, "doppler: %s\n", problem.c_str());
  if (table.empty()) {
    std::printf("There are no models in %s; doppler pull fetches one.\n", models->folder().c_str());
    return 0;
  }
  std::printf("%s", table.text().c_str());
  if (!listing.unfinished.empty()) std::printf("\ndoppler pull NAME goes on with an unfinished one.\n");
  return 0;
}

}  // namespace doppler::cli
