// Reading the files of tests/data/vocab.tar.xz (vocab_files_native.h).
#include "vocab_files_native.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>

#include "engine/vocab_gguf.h"
#include "formats/gguf/gguf.h"

namespace doppler {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_vocab(const std::string& name, double* load_ms) {
  const std::string path = std::string(VOCAB_DIR "/ggml-vocab-") + name + ".gguf";
  const std::string bytes = read_file(path);
  const auto start = std::chrono::steady_clock::now();
  const std::span data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  DP_TRY(const formats::GgufParse parsed, formats::parse_gguf(data, bytes.size(), path));
  if (!parsed.file) return fail(ErrorKind::kInvalidInput, "%s is cut off.", path.c_str());
  DP_TRY(tokenizer::VocabSpec spec, engine::vocab_from_gguf(*parsed.file));
  auto made = tokenizer::Tokenizer::create(std::move(spec));
  if (load_ms) {
    *load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return made;
}

std::vector<VocabVector> read_vectors(const std::string& name) {
  const std::string base = std::string(VOCAB_DIR "/ggml-vocab-") + name + ".gguf";
  const std::string texts = read_file(base + ".inp");
  const std::string_view separator = "\n__ggml_vocab_test__\n";
  std::vector<VocabVector> out;
  for (size_t at = 0;;) {
    const size_t end = texts.find(separator, at);
    if (end == std::string::npos) {
      if (at < texts.size()) out.push_back({texts.substr(at), {}});  // some files end in a separator
      break;
    }
    out.push_back({texts.substr(at, end - at), {}});
    at = end + separator.size();
  }
  std::istringstream lines(read_file(base + ".out"));
  std::string line;
  for (size_t i = 0; i < out.size() && std::getline(lines, line); ++i) {
    std::istringstream numbers(line);
    for (int32_t id = 0; numbers >> id;) out[i].ids.push_back(id);
  }
  return out;
}

}  // namespace doppler
