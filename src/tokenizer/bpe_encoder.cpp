// Merge tables and the encoding of a piece (bpe_encoder.h).
#include "tokenizer/bpe_encoder.h"

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

Result<std::unique_ptr<PieceEncoder>> BpeEncoder::create(const VocabSpec& spec, const TokenIndex& index) {
  auto encoder = std::unique_ptr<BpeEncoder>(new BpeEncoder(spec, index));
  encoder->byte_level_ = spec.kind == VocabKind::kByteLevelBpe;
  DP_CHECK(encoder->add_merges());
  if (encoder->byte_level_) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string_view text = byte_character(static_cast<unsigned char>(byte));
      encoder->byte_ids_[byte] = encoder->id_or_intermediate(text, hash_text(text));
    }
  } else {
    encoder->byte_ids_ = byte_tokens(spec, index);
    for (unsigned c = 0; c < 128; ++c) {
      const char text = static_cast<char>(c);
      encoder->ascii_ids_[c] = index.find(spec.tokens, std::string_view(&text, 1));
    }
    for (size_t i = 0; i < spec.tokens.size(); ++i) encoder->cuts_.add_token(spec.tokens[i]);
    for (size_t i = 0; i < encoder->intermediates_.size(); ++i) {
      encoder->cuts_.add_token(encoder->intermediates_[i]);
    }
  }
  return encoder;
}

int32_t BpeEncoder::id_or_intermediate(std::string_view text, uint64_t hash) {
  const int32_t id = index_.find_hashed(spec_.tokens, text, hash);
  if (id != TokenIndex::kAbsent) return id;
  int32_t extra = intermediate_index_.find(intermediates_, text);
  if (extra == TokenIndex::kAbsent) {
    if (intermediates_.empty()) intermediate_index_.reset(64);
    extra = static_cast<int32_t>(intermediates_.size());
    intermediates_.add(text);
    intermediate_index_.add(intermediates_, extra);
  }
  return static_cast<int32_t>(spec_.tokens.size()) + extra;
}

Result<> BpeEncoder::add_merges() {
  const size_t count = spec_.merges.size() / 2;
  constexpr size_t kMaxMerges = size_t{1} << 22;  // eight times the most known (Gemma: 514,906)
  if (count > kMaxMerges) {
    return fail(ErrorKind::kInvalidInput, "The tokenizer has %zu merges; at most %zu are allowed.", count,
                kMaxMerges);
  }
  pairs_.reset(count);
  struct Looked {
    std::string text;
    uint64_t hash;
  };
  // Three look-ups a merge, nearly each a wait for memory: they are announced this many merges ahead.
  constexpr size_t kAhead = 8;
  std::array<std::array<Looked, 3>, kAhead> ring;
  for (size_t i = 0; i < count + kAhead; ++i) {
    std::array<Looked, 3>& merge = ring[i % kAhead];
    if (i >= kAhead && !merge[0].text.empty() && !merge[1].text.empty()) {
      std::array<int32_t, 3> ids{};
      for (size_t k = 0; k < 3; ++k) ids[k] = id_or_intermediate(merge[k].text, merge[k].hash);
      pairs_.add(ids[0], ids[1], {static_cast<uint32_t>(i - kAhead), ids[2]});
    }
    if (i >= count) continue;
    merge[0].text = spec_.merges[2 * i];
    merge[1].text = spec_.merges[2 * i + 1];
    merge[2].text.assign(merge[0].text).append(merge[1].text);
    for (Looked& looked : merge) {
      looked.hash = hash_text(looked.text);
      index_.prefetch(looked.hash);
    }
  }
  return {};
}

int32_t BpeEncoder::whole_piece(std::string_view piece, EncodeScratch& scratch) const {
  if (!byte_level_) return index_.find(spec_.tokens, piece);
  scratch.text.clear();
  for (const char c : piece) scratch.text.append(byte_character(static_cast<unsigned char>(c)));
  return index_.find(spec_.tokens, scratch.text);
}

void BpeEncoder::emit_unknown(std::string_view bytes, std::vector<int32_t>& out) const {
  const auto count = static_cast<int32_t>(spec_.tokens.size());
  for (const char c : bytes) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0 && id < count) {
      out.push_back(id);
    } else if (spec_.unk != kNoToken && !(spec_.fuse_unknown && !out.empty() && out.back() == spec_.unk)) {
      out.push_back(spec_.unk);
    }
    if (id < 0 && !byte_level_) return;  // one unknown token for the whole character
  }
}

void BpeEncoder::encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  if (spec_.ignore_merges) {
    const int32_t id = whole_piece(piece, scratch);
    if (id != TokenIndex::kAbsent) {
      out.push_back(id);
      return;
    }
  }
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (uint32_t at = 0; at < piece.size();) {
    const auto byte = static_cast<unsigned char>(piece[at]);
    uint32_t length = 1;
    int32_t id = 0;
    if (byte_level_) {
      id = byte_ids_[byte];
    } else if (byte < 0x80) {
      id = ascii_ids_[byte];
    } else {
      length = decode_utf8(piece, at).length;
      id = index_.find(spec_.tokens, piece.substr(at, length));
    }
    symbols.push_back({at, length, id});
    at += length;
  }
  merge_symbols(symbols, [this](const Symbol& left, const Symbol& right) {
    return left.id < 0 || right.id < 0 ? Merge{} : pairs_.find(left.id, right.id);
  });
  const auto count = static_cast<int32_t>(spec_.tokens.size());
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0 && symbol.id < count) {
      out.push_back(symbol.id);
    } else {
      emit_unknown(piece.substr(symbol.begin, symbol.length), out);
    }
  }
}

}  // namespace doppler::tokenizer
