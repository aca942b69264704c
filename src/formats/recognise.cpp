// The table of beginnings (recognise.h). A new kind of wrong file is a new row.
#include "formats/recognise.h"

#include <string_view>

#include "formats/byte_reader.h"
#include "formats/safetensors/safetensors.h"

namespace doppler::formats {
namespace {

using namespace std::string_view_literals;

struct Beginning {
  std::string_view bytes;
  const char* reason;
};
constexpr Beginning kBeginnings[] = {
    {"version https://git-lfs"sv,
     "a Git LFS pointer, not the file itself: run \"git lfs pull\" in its folder"},
    {"<"sv, "a web page (HTML or XML), probably an error page saved by the download"},
    {"PK\x03\x04"sv, "a zip archive; PyTorch checkpoints look like this and are not read, safetensors are"},
    {"\x80\x02"sv, "a Python pickle (an old PyTorch checkpoint), which is not read; safetensors are"},
    {"\x80\x04"sv, "a Python pickle, which is not read; safetensors are"},
    {"lmgg"sv, "a ggml file from before GGUF; convert it to GGUF"},
    {"fmgg"sv, "a ggml file from before GGUF; convert it to GGUF"},
    {"tjgg"sv, "a ggml file from before GGUF; convert it to GGUF"},
    {"\x1f\x8b"sv, "compressed with gzip; unpack it first"},
    {"\xfd"
     "7zXZ"sv,
     "compressed with xz; unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "compressed with zstd; unpack it first"},
    {"\x89HDF"sv, "an HDF5 file, which is not read"},
    {"{"sv, "a JSON text; name the folder it lies in"},
};

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

}  // namespace

Recognised recognise(std::span<const uint8_t> first_bytes, uint64_t file_size) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  if (text.starts_with("GGUF")) return {FileLook::kGguf, ""};
  if (text.size() > 8 && text[8] == '{') {
    const auto length = load_le<uint64_t>(first_bytes.data());
    if (length <= kSafetensorsMaxHeaderBytes && length + 8 <= file_size) return {FileLook::kSafetensors, ""};
  }
  for (const Beginning& row : kBeginnings) {
    if (text.starts_with(row.bytes)) return {FileLook::kKnownOther, row.reason};
  }
  const std::string_view trimmed = without_space(text);
  if (trimmed.starts_with('<')) return {FileLook::kKnownOther, kBeginnings[1].reason};
  if (trimmed.starts_with('{')) return {FileLook::kKnownOther, "a JSON text; name the folder it lies in"};
  if (!text.empty() && text.find_first_not_of('\0') == std::string_view::npos) {
    return {FileLook::kKnownOther, "filled with zero bytes at its start, as an unfinished download is"};
  }
  return {FileLook::kUnknown, ""};
}

}  // namespace doppler::formats
