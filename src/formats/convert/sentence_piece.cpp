// A message is a list of fields, each a number, a wire type and a value; unknown ones are passed over
// (sentence_piece.h). Wire format: protobuf.dev/programming-guides/encoding.
#include "formats/convert/sentence_piece.h"

#include <bit>
#include <cmath>
#include <functional>

#include "formats/byte_reader.h"

namespace doppler::formats {
namespace {

constexpr size_t kMaxPieces = size_t{1} << 20;  // four times the largest known vocabulary
constexpr int32_t kLastType = 6;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number;
  uint32_t wire;
  uint64_t value = 0;      // of the numeric wire types, as bits
  std::string_view bytes;  // of kBytes
};

class Message {
 public:
  Message(std::string_view bytes, const std::string& name)
      : reader_({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}),
        size_(bytes.size()),
        name_(name) {}

  // Calls use(field) for each. A field in another wire type than its own is passed over too.
  Result<> each(const std::function<Result<>(const Field&)>& use) {
    while (reader_.position() < size_) {
      uint64_t key = 0;
      if (!varint(key)) return broken();
      Field field{.number = key >> 3, .wire = static_cast<uint32_t>(key & 7), .bytes = {}};
      if (field.number == 0 || !value(field)) return broken();
      DP_CHECK(use(field));
    }
    return {};
  }

 private:
  bool varint(uint64_t& out) {
    constexpr uint32_t kMostBits = 64;
    out = 0;
    for (uint32_t shift = 0; shift < kMostBits; shift += 7) {
      uint8_t byte = 0;
      if (!reader_.read(byte)) return false;
      out |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  bool value(Field& field) {
    uint32_t word = 0;
    switch (field.wire) {
      case kVarint:
        return varint(field.value);
      case kFixed64:
        return reader_.read(field.value);
      case kFixed32:
        if (!reader_.read(word)) return false;
        field.value = word;
        return true;
      case kBytes:
        return varint(field.value) && reader_.read(field.bytes, field.value);
      default:
        return false;  // groups, which no file of this kind has
    }
  }

  Unexpected broken() const {
    return fail(ErrorKind::kInvalidInput, "%s is cut off or no SentencePiece model.", name_.c_str());
  }

  ByteReader reader_;
  uint64_t size_;
  const std::string& name_;
};

Result<SentencePieces::Piece> read_piece(std::string_view bytes, size_t id, const std::string& name) {
  SentencePieces::Piece piece;
  DP_CHECK(Message(bytes, name).each([&](const Field& field) -> Result<> {
    if (field.number == 1 && field.wire == kBytes) piece.text = field.bytes;
    if (field.number == 2 && field.wire == kFixed32) {
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    }
    if (field.number == 3 && field.wire == kVarint) {
      piece.type = field.value > kLastType ? 0 : static_cast<int32_t>(field.value);
    }
    return {};
  }));
  if (piece.type != 0 && std::isfinite(piece.score)) return piece;
  return fail(ErrorKind::kInvalidInput, "%s gives piece %zu a type or a score that there is not.",
              name.c_str(), id);
}

std::optional<uint32_t> id_of(const Field& field) {
  if (field.value >= kMaxPieces) return std::nullopt;  // -1: there is none
  return static_cast<uint32_t>(field.value);
}

Result<> read_trainer(std::string_view bytes, const std::string& name, SentencePieces& out) {
  out.unk = 0;  // the file's defaults
  out.bos = 1;
  out.eos = 2;
  return Message(bytes, name).each([&](const Field& field) -> Result<> {
    if (field.wire != kVarint) return {};
    switch (field.number) {
      case 3:
        if (field.value < 1 || field.value > 4) {
          return fail(ErrorKind::kInvalidInput, "%s has a model type (%llu) that there is not.", name.c_str(),
                      static_cast<unsigned long long>(field.value));
        }
        out.model = static_cast<SentencePieces::Model>(field.value);
        break;
      case 35:
        out.byte_fallback = field.value != 0;
        break;
      case 40:
        out.unk = id_of(field);
        break;
      case 41:
        out.bos = id_of(field);
        break;
      case 42:
        out.eos = id_of(field);
        break;
      case 43:
        out.pad = id_of(field);
        break;
      default:
        break;
    }
    return {};
  });
}

Result<> read_normaliser(std::string_view bytes, const std::string& name, SentencePieces& out) {
  return Message(bytes, name).each([&](const Field& field) -> Result<> {
    if (field.number == 2) out.has_character_map = !field.bytes.empty();
    if (field.wire != kVarint) return {};
    if (field.number == 3) out.add_dummy_prefix = field.value != 0;
    if (field.number == 4) out.remove_extra_whitespaces = field.value != 0;
    return {};
  });
}

}  // namespace

Result<SentencePieces> parse_sentence_pieces(std::span<const uint8_t> bytes, const std::string& name) {
  SentencePieces out;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  DP_CHECK(Message(all, name).each([&](const Field& field) -> Result<> {
    if (field.wire != kBytes) return {};
    if (field.number == 2) return read_trainer(field.bytes, name, out);
    if (field.number == 3) return read_normaliser(field.bytes, name, out);
    if (field.number != 1) return {};
    if (out.pieces.size() == kMaxPieces) {
      return fail(ErrorKind::kInvalidInput, "%s has more than %zu pieces.", name.c_str(), kMaxPieces);
    }
    DP_TRY(SentencePieces::Piece piece, read_piece(field.bytes, out.pieces.size(), name));
    out.pieces.push_back(std::move(piece));
    return {};
  }));
  if (!out.pieces.empty()) return out;
  return fail(ErrorKind::kInvalidInput, "%s holds no pieces: it is no SentencePiece model.", name.c_str());
}

}  // namespace doppler::formats
