// doppler peers: the machines that share, and how much of which model each has.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "cli/common.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "store/model_store.h"
#include "swarm/holdings.h"
#include "swarm/nearby.h"

namespace doppler::cli {
namespace {

struct AskedModel {
  std::string name;
  std::vector<swarm::AskedFile> files;
  uint64_t bytes = 0;
};

Result<std::vector<AskedModel>> models_of(const std::vector<std::string>& names) {
  DP_TRY(const store::ModelStore models, store::ModelStore::open());
  std::vector<store::StoredModel> stored;
  for (const std::string& name : names) {
    DP_TRY(store::StoredModel model, models.find(name));
    stored.push_back(std::move(model));
  }
  if (names.empty()) stored = models.list().models;
  std::vector<AskedModel> out;
  for (const store::StoredModel& model : stored) {
    AskedModel& asked = out.emplace_back(AskedModel{.name = model.name, .bytes = model.record.bytes()});
    for (const store::StoredFile& file : model.record.files) {
      asked.files.push_back({.bytes = file.bytes, .sha256 = file.sha256});
    }
  }
  return out;
}

// Lists the named peers and, unless `only_named`, those that announce themselves.
Result<std::vector<std::string>> peers_of(const std::vector<std::string>& named, bool only_named,
                                          uint32_t seconds) {
  std::vector<std::string> urls;
  for (const std::string& address : named) {
    DP_TRY(std::string url, swarm::peer_url(address));
    urls.push_back(std::move(url));
  }
  if (only_named) return urls;
  DP_TRY(const auto finder, swarm::Finder::open(0));
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  for (const std::string& address : finder->take()) {
    if (std::ranges::find(urls, "http://" + address) == urls.end()) urls.push_back("http://" + address);
  }
  return urls;
}

struct Row {
  std::string address, model;
  uint64_t held = 0, bytes = 0;
  std::string problem;
};

void print_rows(const std::vector<Row>& rows, bool json) {
  if (json) {
    Json out = Json::array();
    for (const Row& row : rows) {
      out.push_back({{"address", row.address},
                     {"model", row.model},
                     {"held_bytes", row.held},
                     {"bytes", row.bytes},
                     {"problem", row.problem}});
    }
    std::printf("%s\n", to_text(Json{{"peers", std::move(out)}}, 2).c_str());
    return;
  }
  Table table({"machine", "model", ">has", "of"});
  for (const Row& row : rows) {
    table.add({row.address, row.model, row.problem.empty() ? format_bytes(row.held) : row.problem,
               row.model.empty() ? "" : format_bytes(row.bytes)});
  }
  std::printf("%s", rows.empty() ? "no machine was found\n" : table.text().c_str());
}

}  // namespace

int peers_verb(std::span<const std::string> arguments) {
  std::vector<std::string> names, addresses;
  uint32_t seconds = 2;
  bool json = false, only_named = false;
  Args args(
      "doppler peers [flags] [NAME...]",
      "The machines that share on this network, and how much each has of the stored models NAME (default: "
      "all). A machine tells only about what it is asked for by its hash.");
  args.words("NAME", &names);
  args.texts("peer", 0, "ADDRESS", "ask this machine too (HOST, HOST:PORT); may be repeated", &addresses);
  args.flag("only-named", 0, "ask only the machines of --peer", &only_named);
  args.count("wait", 0, "SECONDS", "for announcements, and for answers (default 2)", &seconds,
             {.least = 1, .most = 60});
  args.flag("json", 0, "print one JSON object", &json);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  const auto models = models_of(names);
  if (!models) return exit_failed(models.error());
  const auto peers = peers_of(addresses, only_named, seconds);
  if (!peers) return exit_usage(peers.error());
  std::vector<Row> rows;
  for (const std::string& peer : *peers) {
    const std::string address = peer.substr(std::string_view("http://").size());
    const size_t before = rows.size();
    std::string problem = "nothing of these models";
    for (const AskedModel& model : *models) {
      const auto holdings = swarm::ask_holdings({peer}, model.files, seconds, nullptr);
      if (!holdings) return exit_failed(holdings.error());
      const swarm::Holding& holding = holdings->front();
      if (holding.problem) {
        problem = holding.problem->sentence();
        break;
      }
      if (holding.sum() > 0)
        rows.push_back({.address = address,
                        .model = model.name,
                        .held = holding.sum(),
                        .bytes = model.bytes,
                        .problem = {}});
    }
    if (rows.size() == before)
      rows.push_back({.address = address, .model = {}, .problem = std::move(problem)});
  }
  print_rows(rows, json);
  return 0;
}

}  // namespace doppler::cli
