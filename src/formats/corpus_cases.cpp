// The table of wrong files (corpus_cases.h), built byte by byte.
#include "formats/corpus_cases.h"

#include <cstring>
#include <string_view>

namespace doppler::formats {
namespace {

// Little-endian bytes, appended.
struct Raw {
  std::vector<uint8_t> bytes;

  template <class T>
  Raw& put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return *this;
  }
  Raw& u32(uint32_t value) { return put(value); }
  Raw& u64(uint64_t value) { return put(value); }
  Raw& raw(std::string_view text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  Raw& text(std::string_view text) { return u64(text.size()).raw(text); }
  Raw& zeros(size_t count) {
    bytes.resize(bytes.size() + count);
    return *this;
  }
};

Raw gguf(uint64_t n_tensors, uint64_t n_metadata, uint32_t version = 3) {
  return Raw().raw("GGUF").u32(version).u64(n_tensors).u64(n_metadata);
}

constexpr uint32_t kU8 = 0, kI32 = 5, kU32 = 4, kF32 = 6, kBool = 7, kString = 8, kArray = 9;

// One tensor called "t".
Raw one_tensor(std::vector<uint64_t> dims, uint32_t type, uint64_t offset = 0) {
  Raw out = gguf(1, 0).text("t").u32(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) out.u64(dim);
  return out.u32(type).u64(offset);
}

Raw safetensors(std::string_view header, size_t data_bytes) {
  return Raw().u64(header.size()).raw(header).zeros(data_bytes);
}

}  // namespace

std::vector<CorpusCase> gguf_cases() {
  std::vector<CorpusCase> cases;
  const auto add = [&](const char* name, const Raw& raw, const char* sentence) {
    cases.push_back({name, raw.bytes, sentence});
  };
  Raw good = gguf(2, 4).text("general.architecture").u32(kString).text("llama");
  good.text("n").u32(kU32).u32(7).text("tokens").u32(kArray).u32(kString).u64(2).text("a").text("bc");
  good.text("scores").u32(kArray).u32(kF32).u64(2).put(0.5f).put(1.0f);
  good.text("a").u32(2).u64(32).u64(2).u32(8).u64(0).text("b").u32(1).u64(3).u32(0).u64(96);
  good.zeros(32 - good.bytes.size() % 32).zeros(96 + 12);
  add("good", good, "");
  Raw cut = good;
  cut.bytes.resize(cut.bytes.size() - 1);
  add("cut_data", cut, "is cut: tensor \"b\" takes bytes");
  cut.bytes.resize(100);
  add("cut_header", cut, "is cut or damaged");
  add("empty_model", gguf(0, 0), "");
  add("only_magic", Raw().raw("GGUF"), "is cut or damaged: The fixed header reaches to byte 8");
  add("wrong_magic", Raw().raw("GGML").u32(3).zeros(16), "is not a GGUF file: it begins with 0x47474d4c");
  add("version_1", gguf(0, 0, 1), "has GGUF version 1; versions 2 and 3 are read");
  add("big_endian", gguf(0, 0, 0x03000000), "is a big-endian GGUF file");
  add("many_tensors", gguf(UINT64_MAX, 0), "claims 18446744073709551615 tensors");
  add("many_fields", gguf(0, UINT64_MAX / 2), "claims 9223372036854775807 metadata fields");
  add("long_key", gguf(0, 1).u64(UINT64_MAX).zeros(64), "a metadata key has 18446744073709551615 bytes");
  add("empty_key", gguf(0, 1).text("").zeros(64), "a metadata key has 0 bytes");
  add("bad_type", gguf(0, 1).text("k").u32(13).zeros(64), "field \"k\" has the unknown type id 13");
  add("long_string", gguf(0, 1).text("k").u32(kString).u64(UINT64_MAX).zeros(64), "is cut or damaged");
  add("huge_array", gguf(0, 1).text("k").u32(kArray).u32(kI32).u64(uint64_t{1} << 62).zeros(64),
      "array \"k\" claims 4611686018427387904 elements, but only 64 bytes follow");
  add("huge_string_array", gguf(0, 1).text("k").u32(kArray).u32(kString).u64(8).u64(UINT64_MAX - 3).zeros(64),
      "is cut or damaged");
  add("nested_array", gguf(0, 1).text("k").u32(kArray).u32(kArray).u64(1).zeros(64), "is an array of arrays");
  add("bad_bool", gguf(0, 1).text("k").u32(kBool).put(uint8_t{2}).zeros(64), "is a bool with the value 2");
  add("bad_bool_array",
      gguf(0, 1).text("k").u32(kArray).u32(kBool).u64(2).put(uint8_t{1}).put(uint8_t{9}).zeros(8),
      "is a bool with the value 9");
  add("same_key_twice", gguf(0, 2).text("k").u32(kU8).put(uint8_t{1}).text("k").u32(kU8).put(uint8_t{1}),
      "metadata field \"k\" occurs twice");
  add("alignment_3", gguf(0, 1).text("general.alignment").u32(kU32).u32(3), "it must be a power of two");
  add("alignment_0", gguf(0, 1).text("general.alignment").u32(kU32).u32(0), "it must be a power of two");
  add("alignment_text", gguf(0, 1).text("general.alignment").u32(kString).text("32"),
      "must be a whole number, but it is a value of type string");
  add("no_dims", one_tensor({}, 0).zeros(64), "tensor \"t\" has 0 dimensions");
  add("five_dims", one_tensor({1, 1, 1, 1, 1}, 0).zeros(64), "tensor \"t\" has 5 dimensions");
  add("zero_dim", one_tensor({4, 0}, 0).zeros(64), "tensor \"t\" has a dimension of 0");
  add("overflow", one_tensor({uint64_t{1} << 40, uint64_t{1} << 40}, 0).zeros(64), "overflows 64 bits");
  add("offset_overflow", one_tensor({4}, 0, UINT64_MAX - 31).zeros(64),
      "offset of tensor \"t\" overflows 64 bits");
  add("past_the_end", one_tensor({4}, 0, 64).zeros(64), "is cut: tensor \"t\" takes bytes 128 to 144");
  add("misaligned", one_tensor({4}, 0, 4).zeros(64), "offset 4 of tensor \"t\" is not a multiple of 32");
  add("half_block", one_tensor({31}, 8).zeros(64),
      "column count (31) of tensor \"t\" is not a multiple of the q8_0");
  add("unread_type", one_tensor({256}, 16).zeros(128),
      "has the block type iq2_xxs, which this build cannot read");
  add("unknown_type", one_tensor({256}, 77).zeros(128), "has the unknown type id 77");
  add("own_type", one_tensor({256}, 0x10000).zeros(512), "has the unknown type id 65536");
  Raw twice = gguf(2, 0).text("t").u32(1).u64(4).u32(0).u64(0).text("t").u32(1).u64(4).u32(0).u64(32);
  add("same_tensor_twice", twice.zeros(128), "tensor \"t\" occurs twice");
  add("control_characters", gguf(0, 1).text("\x1b[2J").u32(99).zeros(64),
      "field \"\\x1b[2J\" has the unknown");
  return cases;
}

std::vector<CorpusCase> safetensors_cases() {
  std::vector<CorpusCase> cases;
  const auto add = [&](const char* name, const Raw& raw, const char* sentence) {
    cases.push_back({name, raw.bytes, sentence});
  };
  const auto json = [&](const char* name, std::string_view header, size_t data_bytes, const char* sentence) {
    add(name, safetensors(header, data_bytes), sentence);
  };
  json("good",
       R"({"__metadata__":{"a":"b"},"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
       R"("u":{"dtype":"U8","shape":[],"data_offsets":[16,17]}})",
       17, "");
  json("no_tensors", "{}", 0, "");
  json("empty_tensor", R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0, "");
  add("short", Raw().u32(1), "is too short for a safetensors file (4 bytes)");
  add("huge_header", Raw().u64(UINT64_MAX).raw("{}"), "its header would have 18446744073709551615 bytes");
  add("cut_header", Raw().u64(50).raw("{}"), "is cut: its header needs 58 bytes, but the file has 10");
  json("cut_data", R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 15,
       "is cut: tensor \"t\" takes");
  json("overlap",
       R"({"t":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
       R"("u":{"dtype":"I8","shape":[4],"data_offsets":[3,7]}})",
       8, "tensors \"t\" and \"u\" overlap");
  json("twice",
       R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
       R"("t":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
       8, "tensor \"t\" occurs twice");
  json("wrong_size", R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,15]}})", 16,
       "tensor \"t\" has 15 bytes of data, but its type and shape need 16");
  json("backwards", R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[2,1]}})", 8,
       "data_offsets that run backwards");
  json("overflow", R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 8,
       "a size that overflows 64 bits");
  json("offset_overflow",
       R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}})", 8,
       "an offset that overflows 64 bits");
  json("unknown_type", R"({"t":{"dtype":"F7","shape":[1],"data_offsets":[0,1]}})", 1,
       "tensor \"t\" has the type \"F7\", which this build cannot read");
  json(
      "types_without_use",
      R"({"t":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2]},)"
      R"("u":{"dtype":"U32","shape":[1],"data_offsets":[2,6]},"v":{"dtype":"F4","shape":[4],"data_offsets":[6,8]}})",
      8, "");
  json("half_a_byte", R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2,
       "a count of numbers that fills no whole bytes");
  json("no_type", R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1,
       "not all of dtype, shape and two data_offsets");
  json("three_offsets", R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1,2]}})", 1,
       "more than two data_offsets");
  json("negative", R"({"t":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}})", 1,
       "a negative number where it is not");
  json("fraction", R"({"t":{"dtype":"I8","shape":[1.5],"data_offsets":[0,1]}})", 1,
       "a fraction where it is not");
  json("nine_dims", R"({"t":{"dtype":"I8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
       "more than 8 dimensions");
  json("field_twice", R"({"t":{"dtype":"I8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
       "the field \"dtype\" twice");
  json("unknown_field", R"({"t":{"dtype":"I8","x":1,"shape":[1],"data_offsets":[0,1]}})", 1,
       "an unknown field \"x\"");
  json("nested", R"({"t":{"dtype":{"a":1}}})", 1, "an object where it is not allowed, in \"t\"");
  json("nested_arrays", R"({"t":{"shape":[[1]]}})", 1, "an array where it is not allowed");
  json("array", "[1]", 1, "is an array instead of a JSON object");
  json("not_json", "{\"t\":", 1, "is not valid JSON near byte");
  json("trailing", "{}{}", 1, "is not valid JSON near byte");
  json("deep", std::string(5000, '['), 1, "is an array instead of a JSON object");
  json("metadata_number", R"({"__metadata__":{"a":1}})", 1, "a number where it is not allowed");
  json("bad_utf8", "{\"\xff\":{}}", 1, "is not valid JSON near byte");
  return cases;
}

std::vector<CorpusCase> index_cases() {
  std::vector<CorpusCase> cases;
  const auto add = [&](const char* name, std::string_view text, const char* sentence) {
    cases.push_back({name, std::vector<uint8_t>(text.begin(), text.end()), sentence});
  };
  add("good", R"({"metadata":{"total_size":1,"x":[1,{"y":null}]},"weight_map":{"a":"1.safetensors"}})", "");
  add("no_map", R"({"metadata":{}})", "has no \"weight_map\"");
  add("empty_map", R"({"weight_map":{}})", "has no \"weight_map\"");
  add("map_is_array", R"({"weight_map":["a"]})", "has no \"weight_map\"");
  add("two_maps", R"({"weight_map":{"a":"b"},"weight_map":{"a":"b"}})", "has two weight maps");
  add("tensor_twice", R"({"weight_map":{"a":"b","a":"c"}})", "names tensor \"a\" twice");
  add("outside", R"({"weight_map":{"a":"../../etc/passwd"}})", "which is not a plain file name");
  add("absolute", R"({"weight_map":{"a":"/etc/passwd"}})", "which is not a plain file name");
  add("dots", R"({"weight_map":{"a":".."}})", "which is not a plain file name");
  add("number", R"({"weight_map":{"a":1}})", "has a number instead of a file name for \"a\"");
  add("object", R"({"weight_map":{"a":{"b":"c"}}})", "has an object instead of a file name for \"a\"");
  add("array", "[]", "is an array instead of an object");
  add("text", "\"x\"", "is a string instead of an object");
  add("not_json", "{\"weight_map\":{", "is not valid JSON");
  add("deep", "{\"a\":" + std::string(5000, '['), "is nested too deeply");
  return cases;
}

}  // namespace doppler::formats
