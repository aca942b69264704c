// doppler show: a stored model's source, files and hashes, then the output of `inspect`.
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/inspection.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "store/model_store.h"

namespace doppler::cli {
namespace {

void print_record(const store::StoredModel& model) {
  Table facts({"Stored model", model.name});
  facts.add({"source", printable(model.record.source, 300)});
  if (!model.record.revision.empty()) facts.add({"commit", printable(model.record.revision)});
  facts.add({"stored", printable(model.record.stored)});
  facts.add({"size", format_bytes(model.record.bytes())});
  facts.add({"path", model.load_path()});
  Table files({"Files", ">size", "SHA-256", ""});
  for (const store::StoredFile& file : model.record.files) {
    files.add({printable(file.file), format_bytes(file.bytes), sha256_hex(file.sha256),
               file.is_verified ? "as the source says" : "as it arrived"});
  }
  std::printf("%s\n%s\n", facts.text().c_str(), files.text().c_str());
}

}  // namespace

int show_verb(std::span<const std::string> arguments) {
  bool json = false;
  std::vector<std::string> words;
  Args args("doppler show [flags] NAME",
            "Shows a stored model's source, files and hashes, then the output of inspect.");
  args.words("NAME", &words);
  args.flag("json", 0, "print one JSON object", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (words.size() != 1) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "One name of a stored model is needed (doppler list)."));
  }
  auto models = store::ModelStore::open();
  if (!models) return exit_failed(models.error());
  auto model = models->find(words[0]);
  if (!model) return exit_failed(model.error());
  auto found = inspect_model(model->load_path());
  if (!found) return exit_failed(found.error());
  if (json) {
    Json record = store::record_json(model->record);
    record["name"] = model->name;
    record["path"] = model->load_path();
    record["bytes"] = model->record.bytes();
    const Json out = {{"stored", std::move(record)}, {"model", inspection_json(*found)}};
    std::printf("%s\n", to_text(out, 2).c_str());
    return 0;
  }
  print_record(*model);
  print_inspection(*found);
  return 0;
}

}  // namespace doppler::cli
