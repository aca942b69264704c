// Turns the text of a document into its value. nlohmann/json 3.11 (Debian nlohmann-json3-dev) reads the text and
// reports it as events; no other source includes it. It is header-only, so WebAssembly has it too.
#include <algorithm>

#define JSON_NO_IO 1  // no iostream: 235 KB in WebAssembly
#define JSON_NOEXCEPTION 1
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_events.h"
#include "base/stable_order.h"

namespace doppler {
namespace {

// Passes the library's events on.
class Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Adapter(JsonEvents& events) : events_(events) {}

  bool null() override { return events_.null(); }
  bool boolean(bool value) override { return events_.boolean(value); }
  bool number_integer(int64_t value) override { return events_.integer(value); }
  bool number_unsigned(uint64_t value) override { return events_.natural(value); }
  bool number_float(double value, const std::string&) override { return events_.real(value); }
  bool string(std::string& text) override { return events_.string(text); }
  bool binary(binary_t&) override { return false; }  // no text has it
  bool start_object(std::size_t) override { return events_.start_object(); }
  bool key(std::string& text) override { return events_.key(text); }
  bool end_object() override { return events_.end_object(); }
  bool start_array(std::size_t) override { return events_.start_array(); }
  bool end_array() override { return events_.end_array(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    return events_.parse_error(byte);
  }

 private:
  JsonEvents& events_;
};

// If members have one key, the last value stays, at the place of the first.
void keep_last(Json::Object& members) {
  const std::vector<uint32_t> order =
      stable_order(members.size(), [&](uint32_t a, uint32_t b) { return members[a].key < members[b].key; });
  std::vector<size_t> gone;
  for (size_t i = 1, first = 0; i < order.size(); ++i) {
    if (members[order[i]].key != members[order[first]].key) {
      first = i;
      continue;
    }
    members[order[first]].value = std::move(members[order[i]].value);
    gone.push_back(order[i]);
  }
  std::ranges::sort(gone, std::greater{});
  for (const size_t i : gone) members.erase(members.begin() + static_cast<ptrdiff_t>(i));
}

// Builds the value. Containers that are still open lie on a stack of their own.
class TreeBuilder final : public JsonEvents {
 public:
  explicit TreeBuilder(int max_depth) : max_depth_(static_cast<size_t>(max_depth)) {}

  Json take() { return std::move(root_); }
  bool too_deep() const { return too_deep_; }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool integer(int64_t value) override { return add(value); }
  bool natural(uint64_t value) override { return add(value); }
  bool real(double value) override { return add(value); }
  bool string(std::string& text) override { return add(std::move(text)); }
  bool start_object() override { return open(true); }
  bool start_array() override { return open(false); }
  bool key(std::string& text) override {
    open_.back().members.push_back({std::move(text), Json()});
    return true;
  }
  bool end_object() override {
    Json::Object members = std::move(open_.back().members);
    open_.pop_back();
    keep_last(members);
    return add(std::move(members));
  }
  bool end_array() override {
    Json::Array items = std::move(open_.back().items);
    open_.pop_back();
    return add(std::move(items));
  }
  bool parse_error(size_t) override { return false; }

 private:
  struct Container {
    bool is_object;
    Json::Array items;
    Json::Object members;
  };

  bool open(bool is_object) {
    if (open_.size() == max_depth_) {
      too_deep_ = true;
      return false;
    }
    open_.push_back({is_object, {}, {}});
    return true;
  }
  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().is_object)
      open_.back().members.back().value = std::move(value);
    else
      open_.back().items.push_back(std::move(value));
    return true;
  }

  const size_t max_depth_;
  std::vector<Container> open_;
  Json root_;
  bool too_deep_ = false;
};

}  // namespace

bool parse_json_events(std::string_view text, JsonEvents& events) {
  Adapter adapter(events);
  return nlohmann::json::sax_parse(text.begin(), text.end(), &adapter);
}

Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth) {
  const std::string name(what);
  TreeBuilder builder(max_depth);
  if (parse_json_events(text, builder)) return builder.take();
  if (builder.too_deep()) {
    return fail(ErrorKind::kInvalidInput, "%s is nested deeper than %d levels.", name.c_str(), max_depth);
  }
  return fail(ErrorKind::kInvalidInput, "%s is not valid JSON.", name.c_str());
}

}  // namespace doppler
