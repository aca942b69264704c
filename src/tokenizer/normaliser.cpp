// One function a kind of step (normaliser.h).
#include "tokenizer/normaliser.h"

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/unicode/hugging_face_sets.h"
#include "tokenizer/unicode/normalise.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

using StepKind = NormaliserStep::Kind;

// Calls edit(code, out) for every character, which appends what it becomes; stray bytes are kept.
template <class Edit>
std::string map_characters(std::string_view text, const Edit& edit) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text, at);
    if (c.code == kInvalidCodePoint) {
      out.push_back(text[at]);
    } else {
      edit(c.code, out);
    }
    at += c.length;
  }
  return out;
}

std::string lower_case(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    append_utf8(out, to_lower(code));
    if (code == 0x130) append_utf8(out, 0x307);  // the one full mapping that is longer than one character
  });
}

template <bool (*kIsAccent)(char32_t)>
std::string strip_accents(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    if (!kIsAccent(code)) append_utf8(out, code);
  });
}

// The tables of SentencePiece's rule for machine translation (nmt_nfkc).
std::string nmt(std::string_view text) {
  const auto is_dropped = [](char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  };
  const auto is_space = [](char32_t c) {
    return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == kReplacementCharacter;
  };
  return map_characters(text, [&](char32_t code, std::string& out) {
    if (!is_dropped(code)) append_utf8(out, is_space(code) ? U' ' : code);
  });
}

std::string byte_level(std::string_view text) {
  std::string out;
  for (const char byte : text) out += byte_character(static_cast<unsigned char>(byte));
  return out;
}

std::string clean_text(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    const bool is_line = code == '\t' || code == '\n' || code == '\r';
    if (!is_line && is_bert_control(code)) return;  // vertical tabs and form feeds too
    if (is_line || is_white_space(code)) {
      out.push_back(' ');
    } else {
      append_utf8(out, code);
    }
  });
}

// The blocks that BERT's reference code calls CJK ideographs.
bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string space_cjk(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    const bool cjk = is_cjk(code);
    if (cjk) out.push_back(' ');
    append_utf8(out, code);
    if (cjk) out.push_back(' ');
  });
}

std::string replace(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out.append(text.substr(at, found - at));
    if (found == std::string_view::npos) return out;
    out.append(to);
    at = found + from.size();
  }
}

std::string replace_pattern(std::string_view text, const Regex& regex, std::string_view to) {
  std::string out;
  RegexScan scan(regex, text);
  size_t at = 0, begin = 0, end = 0;
  while (scan.next(begin, end)) {
    out.append(text.substr(at, begin - at)).append(to);
    at = end;
  }
  return out.append(text.substr(at));
}

std::string strip(std::string_view text, bool left) {
  size_t begin = 0, end = text.size();
  if (left) {
    while (begin < text.size()) {
      const DecodedChar c = decode_utf8(text, begin);
      if (!is_white_space(c.code)) break;
      begin += c.length;
    }
  } else {
    while (end > 0) {
      size_t last = end - 1;
      while (last > 0 && end - last < 4 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (!is_white_space(decode_utf8(text, last).code)) break;
      end = last;
    }
  }
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

Result<Normaliser> Normaliser::create(std::vector<NormaliserStep> steps) {
  Normaliser out;
  for (const NormaliserStep& step : steps) {
    out.patterns_.push_back(nullptr);
    out.maps_.push_back(nullptr);
    if (step.kind == StepKind::kReplace && step.from.empty()) {
      return fail(ErrorKind::kInvalidInput, "A normaliser of the tokenizer replaces the empty text.");
    }
    if (step.kind == StepKind::kReplacePattern) {
      DP_TRY(Regex regex, Regex::compile(step.from));
      out.patterns_.back() = std::make_unique<Regex>(std::move(regex));
    }
    if (step.kind == StepKind::kCharacterMap) {
      DP_TRY(CharacterMap map, CharacterMap::create(step.from));
      out.maps_.back() = std::make_unique<CharacterMap>(std::move(map));
    }
  }
  out.steps_ = std::move(steps);
  return out;
}

std::string Normaliser::apply(std::string_view text, bool at_start) const {
  std::string out(text);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const NormaliserStep& step = steps_[i];
    const bool there = std::string_view(out).starts_with(step.to);
    switch (step.kind) {
      case StepKind::kNfc:
        out = normalise(out, NormalForm::kNfc);
        break;
      case StepKind::kNfd:
        out = normalise(out, NormalForm::kNfd);
        break;
      case StepKind::kNfkc:
        out = normalise(out, NormalForm::kNfkc);
        break;
      case StepKind::kNfkd:
        out = normalise(out, NormalForm::kNfkd);
        break;
      case StepKind::kLowercase:
        out = lower_case(out);
        break;
      case StepKind::kStripAccents:
        out = strip_accents<is_accent>(out);
        break;
      case StepKind::kStripBertAccents:
        out = strip_accents<is_bert_accent>(out);
        break;
      case StepKind::kNmt:
        out = nmt(out);
        break;
      case StepKind::kByteLevel:
        out = byte_level(out);
        break;
      case StepKind::kReplace:
        out = replace(out, step.from, step.to);
        break;
      case StepKind::kReplacePattern:
        out = replace_pattern(out, *patterns_[i], step.to);
        break;
      case StepKind::kPrepend:
        if (!out.empty()) out.insert(0, step.to);
        break;
      case StepKind::kPrependUnlessThere:
        if (!out.empty() && !there) out.insert(0, step.to);
        break;
      case StepKind::kPrependAtStart:
        if (!out.empty() && !there && at_start) out.insert(0, step.to);
        break;
      case StepKind::kStripLeft:
        out = strip(out, true);
        break;
      case StepKind::kStripRight:
        out = strip(out, false);
        break;
      case StepKind::kCleanText:
        out = clean_text(out);
        break;
      case StepKind::kSpaceCjk:
        out = space_cjk(out);
        break;
      case StepKind::kCharacterMap:
        out = maps_[i]->apply(out);
        break;
    }
  }
  return out;
}

}  // namespace doppler::tokenizer
