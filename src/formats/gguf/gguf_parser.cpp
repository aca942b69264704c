// Parses and checks a GGUF header: fixed part, metadata, tensor table, then the tensors' places in the file.
// Every count is weighed against the bytes that are left before anything is allocated for it.
#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "formats/byte_reader.h"
#include "formats/gguf/gguf.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;        // name length, name, type, value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, dims, one dim, type, offset
constexpr uint64_t kFirstGuess = 1 << 20;                    // the least worth fetching again
constexpr int64_t kMaxAlignment = 1 << 20;

bool multiply(uint64_t a, uint64_t b, uint64_t& product) { return !__builtin_mul_overflow(a, b, &product); }

}  // namespace

class GgufParser {
 public:
  GgufParser(std::span<const uint8_t> prefix, uint64_t file_size, std::string_view name)
      : prefix_(prefix),
        limit_(std::min(file_size, kGgufMaxHeaderBytes)),
        file_size_(file_size),
        name_(name),
        reader_(prefix) {}

  Result<GgufParse> run() {
    if (auto done = read_all(); !done) return forward(std::move(done).error());
    if (wanted_ != 0) return GgufParse{std::nullopt, wanted_};
    return GgufParse{std::move(file_), 0};
  }

 private:
  // Each step returns false with wanted_ set when the prefix ends too early.
  Result<bool> read_all() {
    for (auto step : {&GgufParser::read_fixed, &GgufParser::read_metadata, &GgufParser::read_alignment,
                      &GgufParser::read_tensors}) {
      DP_TRY(const bool complete, (this->*step)());
      if (!complete) return false;
    }
    const uint64_t mask = file_.alignment_ - 1;
    file_.data_offset_ = (reader_.position() + mask) & ~mask;
    DP_CHECK(place_tensors());
    return keep_header();
  }

  // The prefix ended within `what`: ask for more, or say that the file is cut.
  Result<bool> short_of(const char* what) {
    const uint64_t needed = reader_.needed();
    if (needed > limit_) {
      if (needed <= file_size_) {
        return fail(ErrorKind::kUnsupported, "The header of %s is longer than the allowed %llu bytes.",
                    name_.c_str(), static_cast<Ull>(kGgufMaxHeaderBytes));
      }
      return fail(ErrorKind::kInvalidInput,
                  "%s is cut or damaged: %s reaches to byte %llu, but the file has %llu bytes.",
                  name_.c_str(), what, static_cast<Ull>(needed), static_cast<Ull>(file_size_));
    }
    wanted_ = std::min(limit_, std::max({needed, 2 * static_cast<uint64_t>(prefix_.size()), kFirstGuess}));
    return false;
  }

  uint64_t left() const { return file_size_ - reader_.position(); }

  Result<bool> read_fixed() {
    uint32_t magic = 0;
    if (!reader_.read(magic)) return short_of("The fixed header");
    if (magic != kGgufMagic) {
      return fail(ErrorKind::kInvalidInput,
                  "%s is not a GGUF file: it begins with 0x%08x, not with \"GGUF\".", name_.c_str(),
                  std::byteswap(magic));
    }
    if (!reader_.read(file_.version_)) return short_of("The fixed header");
    const uint32_t version = file_.version_;
    if (version != 0 && (version & 0xFFFF) == 0) {
      return fail(ErrorKind::kUnsupported, "%s is a big-endian GGUF file; only little-endian ones are read.",
                  name_.c_str());
    }
    if (version != 2 && version != 3) {
      return fail(ErrorKind::kUnsupported, "%s has GGUF version %u; versions 2 and 3 are read.",
                  name_.c_str(), version);
    }
    if (!reader_.read(n_tensors_) || !reader_.read(n_metadata_)) return short_of("The fixed header");
    if (n_tensors_ > kGgufMaxTensors || n_tensors_ > left() / kMinTensorBytes) {
      return fail(ErrorKind::kInvalidInput, "%s claims %llu tensors, more than its %llu bytes can describe.",
                  name_.c_str(), static_cast<Ull>(n_tensors_), static_cast<Ull>(file_size_));
    }
    if (n_metadata_ > left() / kMinMetadataBytes) {
      return fail(ErrorKind::kInvalidInput,
                  "%s claims %llu metadata fields, more than its %llu bytes can hold.", name_.c_str(),
                  static_cast<Ull>(n_metadata_), static_cast<Ull>(file_size_));
    }
    return true;
  }

  // A length-prefixed name; `what` is "metadata key" or "tensor name".
  Result<bool> read_name(std::string_view& text, const char* what) {
    uint64_t length = 0;
    if (!reader_.read(length)) return short_of(what);
    if (length == 0 || length > kGgufMaxNameBytes) {
      return fail(ErrorKind::kInvalidInput, "%s: a %s has %llu bytes; 1 to %llu are allowed.", name_.c_str(),
                  what, static_cast<Ull>(length), static_cast<Ull>(kGgufMaxNameBytes));
    }
    if (!reader_.read(text, length)) return short_of(what);
    return true;
  }

  Result<bool> read_metadata() {
    for (uint64_t i = 0; i < n_metadata_; ++i) {
      std::string_view key;
      DP_TRY(const bool named, read_name(key, "metadata key"));
      if (!named) return false;
      if (file_.index_.contains(key)) {
        return fail(ErrorKind::kInvalidInput, "%s: metadata field \"%s\" occurs twice.", name_.c_str(),
                    printable(key).c_str());
      }
      DP_TRY(const bool complete, read_value(key));
      if (!complete) return false;
      file_.index_.emplace(key, file_.metadata_.size() - 1);
    }
    file_.metadata_end_ = reader_.position();
    return true;
  }

  Result<GgufType> known_type(uint32_t id, std::string_view key) {
    if (id < kGgufTypeCount) return static_cast<GgufType>(id);
    return fail(ErrorKind::kInvalidInput,
                "%s: metadata field \"%s\" has the unknown type id %u (0 to %u are known).", name_.c_str(),
                printable(key).c_str(), id, kGgufTypeCount - 1);
  }

  Result<bool> read_value(std::string_view key) {
    uint32_t id = 0;
    if (!reader_.read(id)) return short_of("A metadata field");
    DP_TRY(const GgufType type, known_type(id, key));
    if (type == GgufType::kArray) return read_array(key);
    std::string_view text;
    uint64_t length = gguf_type_bytes(type);
    if (type == GgufType::kString && !reader_.read(length)) return short_of("A metadata field");
    if (!reader_.read(text, length)) return short_of("A metadata field");
    const auto* data = reinterpret_cast<const uint8_t*>(text.data());
    if (type == GgufType::kBool && *data > 1) return bad_bool(key, *data);
    file_.metadata_.push_back({key, GgufValue(type, type, length, data)});
    return true;
  }

  Result<bool> read_array(std::string_view key) {
    uint32_t id = 0;
    uint64_t count = 0;
    if (!reader_.read(id) || !reader_.read(count)) return short_of("A metadata array");
    DP_TRY(const GgufType element, known_type(id, key));
    if (element == GgufType::kArray) {
      return fail(ErrorKind::kUnsupported,
                  "%s: metadata field \"%s\" is an array of arrays, which is not read.", name_.c_str(),
                  printable(key).c_str());
    }
    const uint64_t least = element == GgufType::kString ? 8 : gguf_type_bytes(element);
    if (count > left() / least) {
      return fail(ErrorKind::kInvalidInput,
                  "%s: array \"%s\" claims %llu elements, but only %llu bytes follow.", name_.c_str(),
                  printable(key).c_str(), static_cast<Ull>(count), static_cast<Ull>(left()));
    }
    const uint8_t* data = prefix_.data() + reader_.position();
    GgufValue value(GgufType::kArray, element, count, data);
    if (element == GgufType::kString) {
      DP_TRY(const bool complete, read_strings(value, count));
      if (!complete) return false;
    } else {
      if (!reader_.skip(count * least)) return short_of("A metadata array");
      if (element == GgufType::kBool) {
        for (uint64_t i = 0; i < count; ++i) {
          if (data[i] > 1) return bad_bool(key, data[i]);
        }
      }
    }
    file_.metadata_.push_back({key, std::move(value)});
    return true;
  }

  Result<bool> read_strings(GgufValue& value, uint64_t count) {
    const uint64_t start = reader_.position();
    if (count > (prefix_.size() - start) / 8) {  // do not reserve for what is not here yet
      if (!reader_.skip(count * 8)) return short_of("A metadata array");
    }
    std::vector<uint32_t> offsets;
    offsets.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      offsets.push_back(static_cast<uint32_t>(reader_.position() - start));  // fits: the header is below 2^30
      uint64_t length = 0;
      if (!reader_.read(length) || !reader_.skip(length)) return short_of("A metadata array");
    }
    value.set_string_offsets(std::move(offsets));
    return true;
  }

  Unexpected bad_bool(std::string_view key, uint32_t byte) {
    return fail(ErrorKind::kInvalidInput,
                "%s: metadata field \"%s\" is a bool with the value %u (0 or 1 allowed).", name_.c_str(),
                printable(key).c_str(), byte);
  }

  Result<bool> read_alignment() {
    DP_TRY(const auto alignment, file_.get_integer("general.alignment"));
    if (!alignment) return true;
    if (*alignment < 1 || *alignment > kMaxAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
      return fail(ErrorKind::kInvalidInput,
                  "%s: general.alignment is %lld; it must be a power of two up to %lld.", name_.c_str(),
                  static_cast<long long>(*alignment), static_cast<long long>(kMaxAlignment));
    }
    file_.alignment_ = static_cast<uint32_t>(*alignment);
    return true;
  }

  Result<bool> read_tensors() {
    std::unordered_set<std::string_view> seen;
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      std::string_view name;
      DP_TRY(const bool named, read_name(name, "tensor name"));
      if (!named) return false;
      if (!seen.insert(name).second) {
        return fail(ErrorKind::kInvalidInput, "%s: tensor \"%s\" occurs twice.", name_.c_str(),
                    printable(name).c_str());
      }
      DP_TRY(const bool complete, read_tensor(name));
      if (!complete) return false;
    }
    return true;
  }

  Result<bool> read_tensor(std::string_view name) {
    uint32_t n_dims = 0;
    if (!reader_.read(n_dims)) return short_of("The tensor table");
    if (n_dims < 1 || n_dims > kMaxDims) {
      return fail(ErrorKind::kInvalidInput, "%s: tensor \"%s\" has %u dimensions; 1 to %u are allowed.",
                  name_.c_str(), printable(name).c_str(), n_dims, kMaxDims);
    }
    GgufTensor tensor{std::string(name), DType::kF32, std::vector<uint64_t>(n_dims), 0, 0};
    for (uint32_t d = n_dims; d-- > 0;) {  // the file has the innermost first
      if (!reader_.read(tensor.shape[d])) return short_of("The tensor table");
    }
    uint32_t type_id = 0;
    if (!reader_.read(type_id) || !reader_.read(tensor.offset)) return short_of("The tensor table");
    DP_CHECK(check_tensor(tensor, type_id));
    file_.tensors_.push_back(std::move(tensor));
    return true;
  }

  // Type, block divisibility and size.
  Result<> check_tensor(GgufTensor& tensor, uint32_t type_id) {
    const std::string name = printable(tensor.name);
    const DTypeInfo* info = type_id < kFirstOwnDType ? dtype_info(type_id) : nullptr;
    if (!info) {
      if (const char* known = unsupported_dtype_name(type_id)) {
        return fail(ErrorKind::kUnsupported,
                    "%s: tensor \"%s\" has the block type %s, which this build cannot read.", name_.c_str(),
                    name.c_str(), known);
      }
      return fail(ErrorKind::kInvalidInput, "%s: tensor \"%s\" has the unknown type id %u.", name_.c_str(),
                  name.c_str(), type_id);
    }
    tensor.type = info->type;
    const uint64_t k = tensor.shape.back();
    if (k % info->block_size != 0) {
      return fail(ErrorKind::kInvalidInput,
                  "%s: column count (%llu) of tensor \"%s\" is not a multiple of the %s block (%u).",
                  name_.c_str(), static_cast<Ull>(k), name.c_str(), info->name, info->block_size);
    }
    uint64_t blocks = k / info->block_size;
    bool fits = multiply(blocks, info->block_bytes, tensor.bytes);
    for (size_t d = 0; fits && d + 1 < tensor.shape.size(); ++d) {
      fits = multiply(tensor.bytes, tensor.shape[d], tensor.bytes);
    }
    if (!fits || tensor.bytes > std::numeric_limits<uint64_t>::max() / 2) {
      return fail(ErrorKind::kInvalidInput, "%s: the size of tensor \"%s\" overflows 64 bits.", name_.c_str(),
                  name.c_str());
    }
    if (tensor.bytes == 0) {
      return fail(ErrorKind::kInvalidInput, "%s: tensor \"%s\" has a dimension of 0.", name_.c_str(),
                  name.c_str());
    }
    return {};
  }

  // Offsets in the table count from the data; make them count from the file and keep them inside it.
  Result<> place_tensors() {
    for (GgufTensor& tensor : file_.tensors_) {
      const std::string name = printable(tensor.name);
      if (tensor.offset % file_.alignment_ != 0) {
        return fail(ErrorKind::kInvalidInput, "%s: offset %llu of tensor \"%s\" is not a multiple of %u.",
                    name_.c_str(), static_cast<Ull>(tensor.offset), name.c_str(), file_.alignment_);
      }
      uint64_t end = 0;
      if (__builtin_add_overflow(tensor.offset, file_.data_offset_, &tensor.offset) ||
          __builtin_add_overflow(tensor.offset, tensor.bytes, &end)) {
        return fail(ErrorKind::kInvalidInput, "%s: the offset of tensor \"%s\" overflows 64 bits.",
                    name_.c_str(), name.c_str());
      }
      if (end > file_size_) {
        return fail(ErrorKind::kInvalidInput,
                    "%s is cut: tensor \"%s\" takes bytes %llu to %llu, but the file has %llu bytes.",
                    name_.c_str(), name.c_str(), static_cast<Ull>(tensor.offset), static_cast<Ull>(end),
                    static_cast<Ull>(file_size_));
      }
    }
    return {};
  }

  // Copies the header and moves the views over, so that the file may be unmapped or the prefix freed.
  bool keep_header() {
    file_.header_.assign(prefix_.begin(), prefix_.begin() + static_cast<ptrdiff_t>(reader_.position()));
    const auto* from = reinterpret_cast<const char*>(prefix_.data());
    const auto* to = reinterpret_cast<const char*>(file_.header_.data());
    file_.index_.clear();
    for (size_t i = 0; i < file_.metadata_.size(); ++i) {
      GgufFile::Entry& entry = file_.metadata_[i];
      entry.key = {to + (entry.key.data() - from), entry.key.size()};
      entry.value.rebase(prefix_.data(), file_.header_.data());
      file_.index_.emplace(entry.key, i);
    }
    return true;
  }

  std::span<const uint8_t> prefix_;
  uint64_t limit_, file_size_;
  std::string name_;
  ByteReader reader_;
  uint64_t n_tensors_ = 0, n_metadata_ = 0;
  uint64_t wanted_ = 0;
  GgufFile file_;
};

Result<GgufParse> parse_gguf(std::span<const uint8_t> prefix, uint64_t file_size, std::string_view name) {
  prefix =
      prefix.first(static_cast<size_t>(std::min({uint64_t{prefix.size()}, file_size, kGgufMaxHeaderBytes})));
  return GgufParser(prefix, file_size, printable(name, 300)).run();
}

}  // namespace doppler::formats
