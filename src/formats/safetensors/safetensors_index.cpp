// Reads the index as JSON events, as safetensors.cpp does: maps of 50,000 names are usual for models with
// experts.
#include "formats/safetensors/safetensors_index.h"

#include "base/json_events.h"
#include "base/text.h"
#include "formats/source.h"

namespace doppler::formats {
namespace {

constexpr int kMaxIndexDepth = 16;

class IndexEvents final : public JsonEvents {
 public:
  IndexEvents(SafetensorsIndex& index, const std::string& name) : index_(index), name_(name) {}

  std::string error;
  bool has_map = false;

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("true or false"); }
  bool integer(int64_t) override { return value("a number"); }
  bool natural(uint64_t) override { return value("a number"); }
  bool real(double) override { return value("a number"); }

  bool string(std::string& file) override {
    if (!in_map_) return value("a string");
    if (!is_plain_file_name(file)) {
      return refuse("names the file \"" + printable(file) + "\", which is not a plain file name");
    }
    auto [it, added] = file_ids_.emplace(file, static_cast<uint32_t>(index_.files.size()));
    if (added) {
      if (index_.files.size() == kMaxShards) return refuse("names more than 4096 files");
      index_.files.push_back(file);
    }
    if (!index_.weight_map.emplace(key_, it->second).second) {
      return refuse("names tensor \"" + printable(key_) + "\" twice");
    }
    return true;
  }

  bool start_object() override {
    if (in_map_) return value("an object");
    if (++depth_ > kMaxIndexDepth) return refuse("is nested too deeply");
    if (depth_ == 2 && key_ == "weight_map") {
      if (has_map) return refuse("has two weight maps");
      has_map = in_map_ = true;
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    in_map_ = false;
    return true;
  }
  bool key(std::string& text) override {
    key_ = text;
    return true;
  }
  bool start_array() override {
    if (in_map_ || depth_ == 0) return value("an array");
    if (++depth_ > kMaxIndexDepth) return refuse("is nested too deeply");
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t) override { return refuse("is not valid JSON"); }

 private:
  bool refuse(const std::string& what) {
    error = name_ + " " + what + ".";
    return false;
  }
  // Values outside the map (sizes, versions) are not our business.
  bool value(const char* what) {
    if (depth_ == 0) return refuse(std::string("is ") + what + " instead of an object");
    if (in_map_)
      return refuse(std::string("has ") + what + " instead of a file name for \"" + printable(key_) + "\"");
    return true;
  }

  SafetensorsIndex& index_;
  const std::string& name_;
  std::unordered_map<std::string, uint32_t> file_ids_;
  std::string key_;
  int depth_ = 0;
  bool in_map_ = false;
};

}  // namespace

Result<SafetensorsIndex> parse_safetensors_index(std::string_view json, std::string_view name) {
  SafetensorsIndex index;
  const std::string shown = printable(name, 300);
  IndexEvents events(index, shown);
  if (!parse_json_events(json, events)) {
    return fail(ErrorKind::kInvalidInput, "%s", events.error.c_str());
  }
  if (!events.has_map || index.files.empty()) {
    return fail(ErrorKind::kInvalidInput, "%s has no \"weight_map\" from tensors to files.", shown.c_str());
  }
  return index;
}

}  // namespace doppler::formats
