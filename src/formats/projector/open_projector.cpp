// Opens the file of a vision tower: the one that is named, or the one beside the model.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "formats/architectures/tower.h"
#include "formats/checkpoint_changes.h"
#include "formats/projector/projector.h"
#include "formats/projector/projector_config.h"
#include "formats/tower_padding.h"
#include "formats/vision_files.h"

namespace doppler::formats {
namespace {

// One file in the folder of another FileSet.
class Neighbour final : public FileSet {
 public:
  Neighbour(FileSet& files, std::string name)
      : files_(files), name_(std::move(name)), root_(files.root() + "'s " + name_) {}

  const std::string& root() const override { return root_; }
  const std::string& main_file() const override { return name_; }
  std::vector<std::string> list() const override { return files_.list(); }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    return files_.open(std::move(name));
  }

 private:
  FileSet& files_;
  const std::string name_, root_;
};

Result<bool> is_projector(const Checkpoint& checkpoint) {
  if (!checkpoint.gguf()) return false;
  DP_TRY(const auto architecture, checkpoint.gguf()->get_string("general.architecture"));
  return architecture == kProjectorArchitecture;
}

// The name of the only one beside the model, or of the model's own; empty: there is none, or there are several.
std::string beside(const Checkpoint& model) {
  std::vector<std::string> names;
  for (std::string& name : model.files().list()) {
    if (is_projector_name(name)) names.push_back(std::move(name));
  }
  const std::string own = "mmproj-" + model.files().main_file();
  if (names.size() > 1 && std::ranges::find(names, own) != names.end()) return own;
  if (names.size() > 1) {
    log(LogLevel::kWarning,
        "%s has %zu files of vision towers beside it, such as %s; --mmproj FILE names one.",
        model.name().c_str(), names.size(), printable(names[0]).c_str());
  }
  return names.size() == 1 ? names[0] : std::string();
}

Task<Result<std::unique_ptr<Checkpoint>>> open_named(std::unique_ptr<FileSet> files) {
  auto opening = open_checkpoint(std::move(files));
  DP_CO_TRY(std::unique_ptr<Checkpoint> out, co_await std::move(opening));
  DP_CO_TRY(const bool is_one, is_projector(*out));
  if (!is_one) {
    co_return fail(ErrorKind::kInvalidInput,
                   "%s is no file of a vision tower: its \"general.architecture\" is not \"%s\".",
                   out->name().c_str(), std::string(kProjectorArchitecture).c_str());
  }
  DP_CO_CHECK_WHILE(describe_projector(*out->gguf(), *out), "reading %s", out->name().c_str());
  co_return out;
}

}  // namespace

bool is_projector_name(std::string_view file_name) {
  const std::string name = ascii_lower(file_name);
  return name.ends_with(".gguf") && name.find("mmproj") != name.npos;
}

bool is_projector_tensor(std::string_view name) { return name.starts_with("v.") || name.starts_with("mm."); }

Task<Result<std::unique_ptr<Checkpoint>>> find_projector(const Checkpoint& model,
                                                         std::unique_ptr<FileSet> given) {
  if (!model.gguf()) {
    if (!given) co_return std::unique_ptr<Checkpoint>();
    co_return fail(ErrorKind::kInvalidInput,
                   "--mmproj belongs to GGUF models; %s has its vision tower in its own files.",
                   model.name().c_str());
  }
  if (model.projector()) {
    if (!given) co_return std::unique_ptr<Checkpoint>();
    co_return fail(ErrorKind::kInvalidInput, "%s has a vision tower; --mmproj would be a second one.",
                   model.name().c_str());
  }
  if (given) {
    auto opening = open_named(std::move(given));
    co_return co_await std::move(opening);
  }
  std::string name = beside(model);
  if (name.empty()) co_return std::unique_ptr<Checkpoint>();
  auto opening = open_named(std::make_unique<Neighbour>(model.files(), std::move(name)));
  auto opened = co_await std::move(opening);
  if (opened) co_return std::move(*opened);
  log(LogLevel::kWarning, "%s reads no pictures: %s", model.name().c_str(),
      opened.error().sentence().c_str());
  co_return std::unique_ptr<Checkpoint>();
}

Task<Result<std::unique_ptr<Checkpoint>>> open_projector(Checkpoint& model, std::unique_ptr<FileSet> given) {
  auto finding = find_projector(model, std::move(given));
  DP_CO_TRY(std::unique_ptr<Checkpoint> found, co_await std::move(finding));
  if (found) DP_CO_CHECK(shape_projector(*found));
  if (model.projector()) DP_CO_CHECK(shape_projector(model));
  auto reading = read_vision_files(model, found.get());
  DP_CO_TRY(const auto files, co_await std::move(reading));
  if (!files) co_return found;
  DP_CO_TRY(const auto tower, read_tower(*files));
  if (tower) pad_feed_forward(found ? *found : model, *tower);
  co_return found;
}

}  // namespace doppler::formats
