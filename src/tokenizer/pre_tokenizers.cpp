// The table of pre-tokenizer names (pre_tokenizers.h). To add one: a row, and its pattern unless it is here
// already.
#include "tokenizer/pre_tokenizers.h"

#include <string>

namespace doppler::tokenizer {
namespace {

#define CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define SIGNS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define WORD_OF_TWO_CASES                                                                        \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" CONTRACTIONS \
  "?"                                                                                            \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" CONTRACTIONS "?"
#define ASCII_SIGN_AND_WORD R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"

constexpr const char* kGpt2[] = {kGpt2Pattern};
constexpr const char* kDigitsAlone[] = {R"(\p{N})", kGpt2Pattern};
constexpr const char* kLlama3[] = {CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" SIGNS SPACES};
constexpr const char* kQwen2[] = {CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" SIGNS SPACES};
constexpr const char* kQwen35[] = {
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES};
constexpr const char* kGpt4o[] = {WORD_OF_TWO_CASES R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES};
constexpr const char* kTekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES};
constexpr const char* kDeepSeekLlm[] = {
    R"([\r\n])",
    (R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴ)"
     R"(ᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)"),
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)",
    R"(\p{N}+)"};
constexpr const char* kDeepSeekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                          R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};
constexpr const char* kDeepSeekV3[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    ASCII_SIGN_AND_WORD R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" SPACES};
constexpr const char* kYoutu[] = {
    R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)",
    WORD_OF_TWO_CASES R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES};
constexpr const char* kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"};
constexpr const char* kDefault[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr const char* kBloom[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
constexpr const char* kViking[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"};
constexpr const char* kChameleon[] = {"<sentinel:[0-9]+>",       "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                                      R"(([\t\n]|    |  ))",     R"(\p{N})",
                                      R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern};
constexpr const char* kJais2[] = {
    CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" SIGNS
    R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))"
    R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr const char* kKimiK2[] = {
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" CONTRACTIONS
    "?"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" CONTRACTIONS
    "?"
    R"(|\p{N}{1,3})" SIGNS SPACES};
constexpr const char* kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kSeedCoder[] = {CONTRACTIONS
                                      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" SPACES};
constexpr const char* kExaoneMoe[] = {
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
                 R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kMiniCpm5[] = {R"(\p{N}{1,3})",
                                     CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)" SIGNS SPACES};
constexpr const char* kLines[] = {R"([^\n]+|[\n]+)"};

#undef CONTRACTIONS
#undef SPACES
#undef SIGNS
#undef WORD_OF_TWO_CASES
#undef ASCII_SIGN_AND_WORD

constexpr PreTokenizer kTable[] = {
    {"default", kDefault, false, false},
    {"gpt-2", kGpt2, false, false},
    {"phi-2", kGpt2, false, false},
    {"mpt", kGpt2, false, false},
    {"olmo", kGpt2, false, false},
    {"jais", kGpt2, false, false},
    {"mellum", kGpt2, false, false},
    {"gigachat", kGpt2, false, false},
    {"a.x-4.0", kGpt2, false, false},
    {"exaone4", kGpt2, false, false},
    {"trillion", kGpt2, false, false},
    {"granite-docling", kGpt2, false, false},
    {"modern-bert", kGpt2, false, false},
    {"roberta-bpe", kGpt2, false, true},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3, false, false},
    {"smaug-bpe", kLlama3, false, false},
    {"glm4", kLlama3, false, false},
    {"chatglm-bpe", kLlama3, false, false},
    {"jais-2", kJais2, false, false},
    {"qwen2", kQwen2, false, false},
    {"deepseek-r1-qwen", kQwen2, false, false},
    {"kormo", kQwen2, false, false},
    {"megrez", kQwen2, false, false},
    {"stablelm2", kQwen2, false, false},
    {"hunyuan", kQwen2, false, false},
    {"solar-open", kQwen2, false, false},
    {"grok-2", kQwen2, false, false},
    {"qwen35", kQwen35, false, false},
    {"deepseek-llm", kDeepSeekLlm, false, false},
    {"deepseek-coder", kDeepSeekCoder, false, false},
    {"deepseek-v3", kDeepSeekV3, false, false},
    {"hunyuan-dense", kDeepSeekV3, false, false},
    {"joyai-llm", kDeepSeekV3, false, false},
    {"youtu", kYoutu, true, false},
    {"falcon", kFalcon, false, false},
    {"starcoder", kDigitsAlone, false, false},
    {"refact", kDigitsAlone, false, false},
    {"command-r", kDigitsAlone, false, false},
    {"smollm", kDigitsAlone, false, false},
    {"codeshell", kDigitsAlone, false, false},
    {"exaone", kDigitsAlone, false, false},
    {"minerva-7b", kDigitsAlone, false, false},
    {"mellum2", kDigitsAlone, false, false},
    {"exaone-moe", kExaoneMoe, false, false},
    {"poro-chat", kBloom, false, false},
    {"bloom", kBloom, false, false},
    {"gpt3-finnish", kBloom, false, false},
    {"viking", kViking, false, false},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o, false, false},
    {"llama4", kGpt4o, false, false},
    {"kanana2", kGpt4o, false, false},
    {"minimax-m2", kGpt4o, false, false},
    {"chameleon", kChameleon, false, true},
    {"kimi-k2", kKimiK2, false, false},
    {"bailingmoe", kBailing, false, false},
    {"bailingmoe2", kBailing, false, false},
    {"llada-moe", kBailing, false, false},
    {"seed-coder", kSeedCoder, false, false},
    {"minicpm5", kMiniCpm5, true, false},
    {"gemma4", kLines, false, true},
};

}  // namespace

Result<PreTokenizer> pre_tokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizer& row : kTable) {
    if (name == row.name) return row;
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  return fail(ErrorKind::kUnsupported, "The pre-tokenizer \"%s\" is not known; known are %s.",
              printable(name).c_str(), known.c_str());
}

}  // namespace doppler::tokenizer
