// manifest.json to RdrrManifest: types and presence here, values in manifest_check.cpp.
#include <limits>

#include "formats/rdrr/manifest.h"
#include "formats/rdrr/manifest_members.h"

namespace doppler::formats {
namespace {

constexpr int kMaxDepth = 16;
constexpr uint64_t kMaxGenerationBytes = 64 << 10;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

constexpr const char* kRoles[] = {"weights", "embeddings", "lm_head", "experts", "vector"};
constexpr const char* kLayouts[] = {"flat", "row", "column"};
constexpr const char* kSources[] = {"gguf", "huggingface"};

// Objects of Json are searched from front to back: a hostile one with millions of members would take hours.
bool has_huge_object(std::string_view text) {
  std::vector<uint64_t> commas;  // of each open object; an array counts none
  std::vector<bool> is_object;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (commas.size() > kMaxDepth) return false;  // parse_json() refuses it
      commas.push_back(0);
      is_object.push_back(c == '{');
    } else if ((c == '}' || c == ']') && !commas.empty()) {
      commas.pop_back();
      is_object.pop_back();
    } else if (c == ',' && !commas.empty() && is_object.back()) {
      if (++commas.back() >= kRdrrMaxMembers) return true;
    }
  }
  return false;
}

class ManifestParser {
 public:
  explicit ManifestParser(std::string_view name) : name_(name) {}

  Result<RdrrParsed> run(const Json& document) {
    DP_TRY(RdrrMembers top, RdrrMembers::of(document, "", name_));
    DP_CHECK(read_version(top));
    DP_TRY(m_.id, top.text("id"));
    DP_TRY(m_.type, top.text("type"));
    DP_TRY(const Json* const architecture, top.required("architecture", "an object", &Json::is_object));
    m_.architecture = *architecture;
    DP_CHECK(read_quantization(top));
    DP_TRY(const size_t source, top.choice("source", kSources));
    m_.source = static_cast<RdrrSource>(source);
    DP_TRY(m_.tokenizer, read_place(top, "tokenizer"));
    DP_TRY(m_.chat_template, read_place(top, "chat_template"));
    DP_CHECK(read_generation(top));
    DP_CHECK(read_draft(top));
    DP_CHECK(read_hints(top));
    DP_CHECK(read_self_test(top));
    DP_TRY(m_.shard_bytes, top.count("shard_bytes", kAny));
    DP_CHECK(check_rdrr_shard_bytes(m_.shard_bytes, name_));
    DP_CHECK(read_files(top, "assets", m_.assets, kRdrrMaxAssets));
    DP_CHECK(read_files(top, "shards", m_.shards, kRdrrMaxShards));
    DP_CHECK(read_tensors(top));
    DP_TRY(m_.model_sha256, top.digest("model_sha256"));
    DP_TRY([[maybe_unused]] const Sha256 own, top.digest("manifest_sha256"));  // integrity.h compares it
    m_.unknown = top.rest(unknown_);
    DP_CHECK(check_rdrr_manifest(m_, name_));
    return RdrrParsed{std::move(m_), std::move(unknown_)};
  }

 private:
  Result<> read_version(RdrrMembers& top) {
    DP_TRY(const std::string format, top.text("format"));
    if (format != "rdrr") {
      return fail(ErrorKind::kInvalidInput, "%s is not an RDRR manifest: its \"format\" is \"%s\".",
                  name_.c_str(), printable(format).c_str());
    }
    DP_TRY(const Json* const version, top.array("version"));
    if (version->size() != 2) {
      return fail(ErrorKind::kInvalidInput, "%s: \"version\" must be two numbers, [major, minor].",
                  name_.c_str());
    }
    DP_TRY(const uint64_t major, top.whole((*version)[0], "version[0]", UINT32_MAX));
    DP_TRY(const uint64_t minor, top.whole((*version)[1], "version[1]", UINT32_MAX));
    m_.major = static_cast<uint32_t>(major);
    m_.minor = static_cast<uint32_t>(minor);
    if (m_.major == kRdrrMajor) return {};
    return fail(
        ErrorKind::kUnsupported, "%s has RDRR version %u.%u; this build reads version %u. %s", name_.c_str(),
        m_.major, m_.minor, kRdrrMajor,
        m_.major > kRdrrMajor ? "A newer Doppler is needed." : "Convert the model again with this build.");
  }

  Result<> read_quantization(RdrrMembers& top) {
    DP_TRY(const Json* const value, top.required("quantization", "an object", &Json::is_object));
    DP_TRY(RdrrMembers members, RdrrMembers::of(*value, "quantization", name_));
    RdrrQuantization& q = m_.quantization;
    DP_TRY(q.weights, members.text_or_null("weights"));
    DP_TRY(q.embeddings, members.text_or_null("embeddings"));
    DP_TRY(q.lm_head, members.text_or_null("lm_head"));
    DP_TRY(q.experts, members.text_or_null("experts"));
    DP_TRY(q.kv_cache, members.text_or_null("kv_cache"));
    q.unknown = members.rest(unknown_);
    return {};
  }

  Result<std::optional<RdrrPlace>> read_place(RdrrMembers& top, std::string_view key) {
    DP_TRY(const Json* const value, top.member(key));
    if (!value) return std::optional<RdrrPlace>();
    DP_TRY(RdrrMembers members, RdrrMembers::of(*value, std::string(key), name_));
    RdrrPlace place;
    DP_TRY(place.asset, members.text("asset"));
    DP_TRY(place.key, members.text_or_null("key"));
    place.unknown = members.rest(unknown_);
    return std::optional(std::move(place));
  }

  Result<> read_generation(RdrrMembers& top) {
    DP_TRY(const Json* const value, top.member("generation"));
    if (!value) return {};
    if (!value->is_object() || to_text(*value).size() > kMaxGenerationBytes) {
      return fail(ErrorKind::kInvalidInput,
                  "%s: \"generation\" must be null or an object of at most %llu bytes.", name_.c_str(),
                  static_cast<unsigned long long>(kMaxGenerationBytes));
    }
    m_.generation = *value;
    return {};
  }

  Result<> read_draft(RdrrMembers& top) {
    DP_TRY(const Json* const value, top.member("draft"));
    if (!value) return {};
    DP_TRY(RdrrMembers members, RdrrMembers::of(*value, "draft", name_));
    RdrrDraft draft;
    DP_TRY(draft.model, members.text("model"));
    DP_TRY(const Json* const digest, members.member("model_sha256"));
    if (digest) {
      DP_TRY(draft.model_sha256, members.digest("model_sha256"));
    }
    draft.unknown = members.rest(unknown_);
    m_.draft = std::move(draft);
    return {};
  }

  Result<> read_hints(RdrrMembers& top) {
    DP_TRY(const Json* const value, top.member("kernel_hints"));
    if (!value) return {};
    DP_TRY(const Json* const list, top.array("kernel_hints"));
    m_.kernel_hints.emplace();
    for (size_t i = 0; i < list->size(); ++i) {
      DP_TRY(RdrrMembers members, RdrrMembers::of((*list)[i], format_text("kernel_hints[%zu]", i), name_));
      RdrrKernelHint hint;
      DP_TRY(hint.operation, members.text("operation"));
      DP_TRY(hint.variant, members.text("variant"));
      DP_TRY(hint.wgsl_sha256, members.digest("wgsl_sha256"));
      DP_TRY(hint.device, members.text("device"));
      if (members.has("measured")) DP_CHECK(read_measured(members, hint));
      hint.unknown = members.rest(unknown_);
      m_.kernel_hints->push_back(std::move(hint));
    }
    return {};
  }

  Result<> read_measured(RdrrMembers& hint_members, RdrrKernelHint& hint) {
    DP_TRY(const Json* const value, hint_members.required("measured", "an object", &Json::is_object));
    DP_TRY(RdrrMembers members, RdrrMembers::of(*value, hint_members.path_of("measured"), name_));
    RdrrMeasuredHint& m = hint.measured.emplace();
    DP_TRY(m.shape, members.text("shape"));
    DP_TRY(m.lane, members.text("lane"));
    DP_TRY(const Json* const constants, members.required("constants", "an object", &Json::is_object));
    for (const auto& [key, number] : constants->items()) {
      DP_TRY(const uint64_t whole, members.whole(number, members.path_of("constants"), kRdrrMaxHintConstant));
      m.constants[key] = static_cast<uint32_t>(whole);
    }
    DP_TRY(m.seconds, members.number("seconds"));
    DP_TRY(m.table_seconds, members.number("table_seconds"));
    m.unknown = members.rest(unknown_);
    return {};
  }

  // Whole numbers below 2^32.
  Result<std::vector<uint32_t>> read_ids(RdrrMembers& members, std::string_view key) {
    DP_TRY(const Json* const list, members.array(key));
    std::vector<uint32_t> ids;
    for (const Json& value : *list) {
      DP_TRY(const uint64_t id, members.whole(value, members.path_of(key), UINT32_MAX));
      ids.push_back(static_cast<uint32_t>(id));
    }
    return ids;
  }

  Result<> read_self_test(RdrrMembers& top) {
    DP_TRY(const Json* const value, top.member("self_test"));
    if (!value) return {};
    DP_TRY(RdrrMembers members, RdrrMembers::of(*value, "self_test", name_));
    RdrrSelfTest test;
    DP_TRY(test.tokens, read_ids(members, "tokens"));
    DP_TRY(const double tolerance, members.number("tolerance"));
    test.tolerance = static_cast<float>(tolerance);
    DP_TRY(test.lane, members.text("lane"));
    DP_TRY(const Json* const list, members.array("positions"));
    for (size_t i = 0; i < list->size(); ++i) {
      DP_TRY(RdrrMembers at, RdrrMembers::of((*list)[i], format_text("self_test.positions[%zu]", i), name_));
      RdrrSelfTest::Position position;
      DP_TRY(const uint64_t number, at.count("position", UINT32_MAX));
      position.position = static_cast<uint32_t>(number);
      DP_TRY(position.ids, read_ids(at, "ids"));
      DP_TRY(const Json* const logits, at.array("logits"));
      for (const Json& logit : *logits) {
        if (!logit.is_number()) {
          return fail(ErrorKind::kInvalidInput, "%s: \"%s\" must hold numbers only.", name_.c_str(),
                      at.path_of("logits").c_str());
        }
        position.logits.push_back(static_cast<float>(logit.get<double>()));
      }
      position.unknown = at.rest(unknown_);
      test.positions.push_back(std::move(position));
    }
    test.unknown = members.rest(unknown_);
    m_.self_test = std::move(test);
    return {};
  }

  template <class File>
  Result<> read_files(RdrrMembers& top, std::string_view key, std::vector<File>& files, uint64_t most) {
    DP_TRY(const Json* const list, top.array(key));
    DP_CHECK(check_count(key, list->size(), most));
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = std::string(key) + format_text("[%zu]", i);
      DP_TRY(RdrrMembers members, RdrrMembers::of((*list)[i], path, name_));
      File file;
      DP_TRY(file.file, members.text("file"));
      DP_TRY(file.bytes, members.count("bytes", kAny));
      DP_TRY(file.sha256, members.digest("sha256"));
      file.unknown = members.rest(unknown_);
      files.push_back(std::move(file));
    }
    return {};
  }

  Result<> check_count(std::string_view key, uint64_t count, uint64_t most) {
    if (count <= most) return {};
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" has %llu entries; at most %llu are allowed.",
                name_.c_str(), std::string(key).c_str(), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(most));
  }

  Result<> read_tensors(RdrrMembers& top) {
    DP_TRY(const Json* const list, top.array("tensors"));
    DP_CHECK(check_count("tensors", list->size(), kRdrrMaxTensors));
    for (size_t i = 0; i < list->size(); ++i) {
      DP_TRY(RdrrMembers members, RdrrMembers::of((*list)[i], format_text("tensors[%zu]", i), name_));
      RdrrTensor tensor;
      DP_CHECK(read_tensor(members, tensor));
      tensor.unknown = members.rest(unknown_);
      m_.tensors.push_back(std::move(tensor));
    }
    return {};
  }

  Result<> read_tensor(RdrrMembers& members, RdrrTensor& tensor) {
    DP_TRY(tensor.name, members.text("name"));
    DP_TRY(const Json* const shape, members.array("shape"));
    DP_CHECK(check_count(members.path_of("shape"), shape->size(), kRdrrMaxDims));
    for (const Json& extent : *shape) {
      DP_TRY(const uint64_t size, members.whole(extent, members.path_of("shape"), kAny));
      tensor.shape.push_back(size);
    }
    DP_TRY(const std::string type, members.text("dtype"));
    const auto dtype = dtype_from_name(type);
    if (!dtype) {
      return fail(ErrorKind::kUnsupported, "%s: tensor \"%s\" has the type \"%s\", which is not read.",
                  name_.c_str(), printable(tensor.name).c_str(), printable(type).c_str());
    }
    tensor.type = *dtype;
    DP_TRY(const size_t role, members.choice("role", kRoles));
    tensor.role = static_cast<RdrrRole>(role);
    DP_TRY(const size_t layout, members.choice("layout", kLayouts));
    tensor.layout = static_cast<RdrrLayout>(layout);
    DP_TRY(tensor.source_index, members.count("source_index", kAny));
    if (members.has("spans")) return read_spans(members, tensor);
    DP_TRY(const uint64_t shard, members.count("shard", kRdrrMaxShards));
    tensor.shard = static_cast<uint32_t>(shard);
    DP_TRY(tensor.offset, members.count("offset", kAny));
    DP_TRY(tensor.bytes, members.count("bytes", kAny));
    if (tensor.offset <= m_.shard_bytes && tensor.bytes <= m_.shard_bytes - tensor.offset) return {};
    return fail(ErrorKind::kInvalidInput,
                "%s: tensor \"%s\" does not fit into its shard and has no \"spans\".", name_.c_str(),
                printable(tensor.name).c_str());
  }

  // [[shard, offset, bytes], ...]: each but the first begins its shard, each but the last ends its shard.
  Result<> read_spans(RdrrMembers& members, RdrrTensor& tensor) {
    DP_TRY(const Json* const list, members.array("spans"));
    const std::string path = members.path_of("spans");
    bool sound = list->size() >= 2;
    uint64_t next = 0;
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& span = (*list)[i];
      if (!span.is_array() || span.size() != 3) {
        sound = false;
        break;
      }
      DP_TRY(const uint64_t shard, members.whole(span[0], path, kRdrrMaxShards));
      DP_TRY(const uint64_t offset, members.whole(span[1], path, m_.shard_bytes));
      DP_TRY(const uint64_t bytes, members.whole(span[2], path, m_.shard_bytes - offset));
      if (i == 0) {
        tensor.shard = static_cast<uint32_t>(shard);
        tensor.offset = offset;
      } else {
        sound = sound && shard == next && offset == 0;
      }
      sound = sound && bytes != 0 && (i + 1 == list->size() || offset + bytes == m_.shard_bytes);
      next = shard + 1;
      sound = sound && !__builtin_add_overflow(tensor.bytes, bytes, &tensor.bytes);
    }
    if (sound) return {};
    return fail(ErrorKind::kInvalidInput,
                "%s: \"spans\" of tensor \"%s\" must be two or more [shard, offset, bytes] that follow each "
                "other without a gap.",
                name_.c_str(), printable(tensor.name).c_str());
  }

  const std::string name_;
  RdrrManifest m_;
  std::vector<std::string> unknown_;
};

}  // namespace

Result<RdrrParsed> parse_rdrr_manifest(std::string_view text, std::string_view name) {
  const std::string shown(name);
  if (text.size() > kRdrrMaxManifestBytes) {
    return fail(ErrorKind::kInvalidInput, "%s has %s; at most %s are read.", shown.c_str(),
                format_bytes(text.size()).c_str(), format_bytes(kRdrrMaxManifestBytes).c_str());
  }
  if (has_huge_object(text)) {
    return fail(ErrorKind::kInvalidInput, "%s has an object of more than %llu members.", shown.c_str(),
                static_cast<unsigned long long>(kRdrrMaxMembers));
  }
  DP_TRY(const Json document, parse_json(text, name, kMaxDepth));
  return ManifestParser(name).run(document);
}

}  // namespace doppler::formats
