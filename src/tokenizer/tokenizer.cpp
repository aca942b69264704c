// The pipeline: added tokens cut the text; what lies between is normalised, split and merged (tokenizer.h).
#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normaliser.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/piece_encoder.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/splitter.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/token_index.h"

namespace doppler::tokenizer {
namespace {

// Tokens that end a turn or a text in models whose files name only one of them.
constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",  // Llama 3
    "<|im_end|>",
    "<|endoftext|>",  // ChatML, Qwen, GPT-2
    "<end_of_turn>",
    "<turn|>",  // Gemma 2 and 3, Gemma 4
    "<|end|>",  // Phi-3
    "<|return|>",
    "<|call|>",  // gpt-oss
    "<｜end▁of▁sentence｜>",
    "<|EOT|>",  // DeepSeek
    "<|END_OF_TURN_TOKEN|>",
    "<|END_RESPONSE|>",  // Command-R
    "<|eot|>",
    "<|eom|>",  // Llama 4
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<end_of_utterance>",
    "<|role_end|>",
    "</s>",
};

// Where the file names no end of a turn: the first of these that is a token.
constexpr std::string_view kEndOfTurnTokens[] = {"<|eot_id|>", "<|im_end|>", "<end_of_turn>",
                                                 "<turn|>",    "<|eot|>",    "<|END_OF_TURN_TOKEN|>"};

}  // namespace

struct Tokenizer::Pipeline {
  TokenIndex index;
  Normaliser normaliser;
  Splitter splitter;
  std::unique_ptr<PieceEncoder> encoder;
  SpecialMatcher all_added;
  SpecialMatcher user_added;
  bool cut_at_space_marks;

  // One encode() call.
  struct Run {
    const Pipeline& pipeline;
    PieceCache cache;
    EncodeScratch scratch;
    std::vector<int32_t> ids;

    void text(std::string_view text, bool at_start) {
      if (text.empty()) return;
      if (pipeline.normaliser.empty()) return split(text);
      split(pipeline.normaliser.apply(text, at_start));
    }
    void split(std::string_view text) {
      pipeline.splitter.split(text, [this](std::string_view piece) { cut(piece); });
    }
    void cut(std::string_view text) {
      if (!pipeline.cut_at_space_marks) return piece(text);
      size_t begin = 0;
      for (size_t at = text.find(kSpaceMark); at != std::string_view::npos;
           at = text.find(kSpaceMark, at + 1)) {
        if (at > begin && pipeline.encoder->may_cut_before_space_mark(text, at)) {
          piece(text.substr(begin, at - begin));
          begin = at;
        }
      }
      piece(text.substr(begin));
    }
    void piece(std::string_view piece) {
      if (piece.empty()) return;
      if (piece.size() > PieceCache::kLongestPiece) return pipeline.encoder->encode(piece, scratch, ids);
      const size_t slot = cache.slot_of(piece);
      if (cache.get(slot, piece, ids)) return;
      const size_t before = ids.size();
      pipeline.encoder->encode(piece, scratch, ids);
      cache.put(slot, piece, std::span(ids).subspan(before));
    }
  };
};

Tokenizer::Tokenizer(VocabSpec spec) : spec_(std::move(spec)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(VocabSpec spec) {
  DP_CHECK(check_vocab(spec));
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  const VocabSpec& kept = tokenizer->spec_;
  DP_TRY(Normaliser normaliser, Normaliser::create(kept.normaliser));
  DP_TRY(Splitter splitter, Splitter::create(kept.splits));
  // A piece that may be a token as a whole must stay whole.
  const bool has_space_marks = kept.kind == VocabKind::kSentencePiece ||
                               kept.kind == VocabKind::kCharacterBpe || kept.kind == VocabKind::kUnigram;
  tokenizer->pipeline_.reset(new Pipeline{{},
                                          std::move(normaliser),
                                          std::move(splitter),
                                          nullptr,
                                          SpecialMatcher(kept.added, true),
                                          SpecialMatcher(kept.added, false),
                                          has_space_marks && !kept.ignore_merges});
  Pipeline& pipeline = *tokenizer->pipeline_;
  pipeline.index.reset(kept.tokens.size());
  for (size_t id = 0; id < kept.tokens.size(); ++id)
    pipeline.index.add(kept.tokens, static_cast<int32_t>(id));
  DP_TRY(pipeline.encoder, make_piece_encoder(kept, pipeline.index));
  tokenizer->make_token_bytes();
  tokenizer->find_end_tokens();
  tokenizer->spec_.merges = TextTable();  // in the encoder's own form now
  return tokenizer;
}

void Tokenizer::make_token_bytes() {
  bytes_.reserve(vocab_size(), 0);
  std::string bytes;
  for (size_t id = 0; id < vocab_size(); ++id) {
    const std::string_view text = spec_.tokens[id];
    const TokenType type = spec_.types[id];
    bytes.assign(text);
    if (type == TokenType::kByte && text.size() == 6) {  // "<0x0A>"
      const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
      bytes.assign(1, static_cast<char>(digit(text[3]) * 16 + digit(text[4])));
    } else if (type == TokenType::kControl || type == TokenType::kUnknown) {
      // as they are
    } else if (spec_.kind != VocabKind::kByteLevelBpe) {
      size_t at = 0;
      while ((at = bytes.find(kSpaceMark, at)) != std::string::npos)
        bytes.replace(at++, kSpaceMark.size(), " ");
    } else if (type != TokenType::kUserDefined) {
      if (auto raw = bytes_of_characters(text)) bytes = std::move(*raw);
    }
    bytes_.add(bytes);
  }
}

void Tokenizer::find_end_tokens() {
  for (const std::string_view name : kEndOfTurnTokens) {
    if (spec_.eot == kNoToken) spec_.eot = find(name).value_or(kNoToken);
  }
  for (const int32_t id : {spec_.eos, spec_.eot, spec_.eom}) {
    if (id != kNoToken) end_ids_.push_back(id);
  }
  for (const std::string_view name : kEndTokens) {
    const std::optional<int32_t> id = find(name);
    if (!id) continue;
    const TokenType type = token_type(*id);
    if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
    end_ids_.push_back(*id);
  }
  // gpt-oss ends its messages, not its answer, with <|end|>.
  if (find("<|return|>") && find("<|call|>")) {
    if (const auto message_end = find("<|end|>"); message_end && *message_end != spec_.eos) {
      std::erase(end_ids_, *message_end);
    }
  }
  std::ranges::sort(end_ids_);
  end_ids_.erase(std::ranges::unique(end_ids_).begin(), end_ids_.end());
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    return fail(ErrorKind::kInvalidInput, "The text has %zu bytes; at most %zu are encoded at once.",
                text.size(), kMaxTextBytes);
  }
  Pipeline::Run run{*pipeline_, PieceCache(text.size()), {}, {}};
  run.ids.reserve(text.size() / 4 + 8);
  if (options.add_special) run.ids = spec_.prefix_ids;
  const SpecialMatcher& matcher = options.parse_special ? pipeline_->all_added : pipeline_->user_added;
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match match = matcher.find(text, at);
    run.text(text.substr(at, match.begin - at), at == 0);
    if (match.token) run.ids.push_back(match.token->id);
    at = match.end;
  }
  if (options.add_special) run.ids.insert(run.ids.end(), spec_.suffix_ids.begin(), spec_.suffix_ids.end());
  return std::move(run.ids);
}

Result<EncodedPair> Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  EncodedPair out;
  DP_TRY(const std::vector<int32_t> before, encode(first));
  DP_TRY(const std::vector<int32_t> behind, encode(second));
  for (const auto* ids : {&spec_.prefix_ids, &before, &spec_.pair_ids}) {
    out.ids.insert(out.ids.end(), ids->begin(), ids->end());
  }
  out.types.assign(out.ids.size(), 0);
  for (const auto* ids : {&behind, &spec_.suffix_ids}) {
    out.ids.insert(out.ids.end(), ids->begin(), ids->end());
  }
  out.types.resize(out.ids.size(), spec_.second_type);
  return out;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  StreamDecoder decoder(*this, options);
  std::string out;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= vocab_size()) {
      return fail(ErrorKind::kInvalidInput, "The token id %d is outside of the vocabulary (%zu tokens).", id,
                  vocab_size());
    }
    out += decoder.feed(id);
  }
  return out + decoder.flush();
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < vocab_size() ? bytes_[static_cast<size_t>(id)]
                                                           : std::string_view();
}

std::string_view Tokenizer::token_text(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < vocab_size() ? spec_.tokens[static_cast<size_t>(id)]
                                                           : std::string_view();
}

TokenType Tokenizer::token_type(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < vocab_size() ? spec_.types[static_cast<size_t>(id)]
                                                           : TokenType::kUndefined;
}

std::optional<int32_t> Tokenizer::find(std::string_view token_text) const {
  const int32_t id = pipeline_->index.find(spec_.tokens, token_text);
  if (id == TokenIndex::kAbsent) return std::nullopt;
  return id;
}

bool Tokenizer::adds_bos() const { return !spec_.prefix_ids.empty() && spec_.prefix_ids[0] == spec_.bos; }

bool Tokenizer::is_end_of_generation(int32_t id) const { return std::ranges::binary_search(end_ids_, id); }

}  // namespace doppler::tokenizer
