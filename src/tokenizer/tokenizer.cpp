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

// Tokens that end a turn or a text, for models whose files name only one.
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

// The first of these that is a token ends a turn, if the file names no such token.
constexpr std::string_view kEndOfTurnTokens[] = {"<|eot_id|>", "<|im_end|>", "<end_of_turn>",
                                                 "<turn|>",    "<|eot|>",    "<|END_OF_TURN_TOKEN|>"};

}  // namespace

struct Tokenizer::Pipeline {
  // Added tokens, with and without those that EncodeOptions::parse_special is for.
  struct Matchers {
    explicit Matchers(const std::vector<AddedToken>& tokens) : all(tokens, true), user(tokens, false) {}
    SpecialMatcher all, user;
  };

  TokenIndex index;
  Normaliser normaliser;  // for a text without the added tokens of `given`
  // For a text without the tokens of `normalised` too. If there are no such tokens, it is empty and its work is part of
  // `normaliser`.
  Normaliser marker;
  Splitter splitter;
  std::unique_ptr<PieceEncoder> encoder;
  std::vector<AddedToken> given_tokens, normalised_tokens;  // by the text that is searched for them
  Matchers given, normalised;
  bool cut_at_space_marks, has_byte_alphabet;

  // One encode() call.
  struct Run {
    const Pipeline& pipeline;
    bool parse_special;
    PieceCache cache;
    EncodeScratch scratch;
    std::vector<int32_t> ids;

    // Calls between(text, at_start) for what lies between the tokens that are found.
    template <class Between>
    void match(const Matchers& matchers, std::string_view text, bool at_start, const Between& between) {
      const SpecialMatcher& matcher = parse_special ? matchers.all : matchers.user;
      for (size_t at = 0; at < text.size();) {
        const SpecialMatcher::Match match = matcher.find(text, at);
        const std::string_view before = text.substr(at, match.begin - at);
        if (!before.empty()) between(before, at_start && at == 0);
        if (match.token) ids.push_back(match.token->id);
        at = match.end;
      }
    }
    void text(std::string_view text, bool at_start) {
      if (pipeline.normaliser.empty()) return normalised(text, at_start);
      normalised(pipeline.normaliser.apply(text, at_start), at_start);
    }
    void normalised(std::string_view text, bool at_start) {
      if (pipeline.normalised_tokens.empty()) return split(text);
      match(pipeline.normalised, text, at_start, [this](std::string_view part, bool is_first) {
        if (pipeline.marker.empty()) return split(part);
        split(pipeline.marker.apply(part, is_first));
      });
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
      if (pipeline.has_byte_alphabet) {
        if (const std::optional<std::string> bytes = bytes_of_characters(piece)) return merge(*bytes);
      }
      merge(piece);
    }
    void merge(std::string_view piece) {
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
  const bool has_normalised = std::ranges::any_of(kept.added, &AddedToken::normalized);
  const auto marks =
      kept.normaliser.end() - (has_normalised ? static_cast<ptrdiff_t>(kept.marking_steps) : 0);
  DP_TRY(Normaliser normaliser, Normaliser::create({kept.normaliser.begin(), marks}));
  DP_TRY(Normaliser marker, Normaliser::create({marks, kept.normaliser.end()}));
  DP_TRY(Splitter splitter, Splitter::create(kept.splits));
  std::vector<AddedToken> given, normalised;
  for (const AddedToken& token : kept.added) {
    if (!token.normalized) {
      given.push_back(token);
      continue;
    }
    normalised.push_back(token);
    if (!normaliser.empty()) normalised.back().text = normaliser.apply(token.text, true);
  }
  // A piece that may be a token as a whole must stay whole.
  const bool has_space_marks = kept.kind == VocabKind::kSentencePiece ||
                               kept.kind == VocabKind::kCharacterBpe || kept.kind == VocabKind::kUnigram;
  // The lists move with their storage, to which the matchers point.
  const Pipeline::Matchers given_matchers(given), normalised_matchers(normalised);
  tokenizer->pipeline_.reset(new Pipeline{.index = {},
                                          .normaliser = std::move(normaliser),
                                          .marker = std::move(marker),
                                          .splitter = std::move(splitter),
                                          .encoder = nullptr,
                                          .given_tokens = std::move(given),
                                          .normalised_tokens = std::move(normalised),
                                          .given = given_matchers,
                                          .normalised = normalised_matchers,
                                          .cut_at_space_marks = has_space_marks && !kept.ignore_merges,
                                          .has_byte_alphabet = kept.has_byte_alphabet});
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
    } else if (type == TokenType::kUnused) {
      bytes.clear();  // what fills a vocabulary up stands for no text
    } else if (type == TokenType::kControl || type == TokenType::kUnknown) {
      // bytes: unchanged
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
  Pipeline::Run run{*pipeline_, options.parse_special, PieceCache(text.size()), {}, {}};
  run.ids.reserve(text.size() / 4 + 8);
  if (options.add_special) run.ids = spec_.prefix_ids;
  run.match(pipeline_->given, text, true,
            [&run](std::string_view part, bool at_start) { run.text(part, at_start); });
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
