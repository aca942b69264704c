// Build-time program: embeds WGSL files into C++ so that the host cannot disagree with the shader.
//   embed_wgsl header <src/kernels> <folder/file.wgsl> <out.h>     one file -> its header
//   embed_wgsl compact <src/kernels> <folder/file.wgsl> <out.h>    the same, the text without comments
//   embed_wgsl registry <out.cpp> [folder/file.wgsl ...]           all files -> gpu::embedded_wgsl()
//   embed_wgsl text <file.wgsl>                                    what is embedded of a file, on stdout
// Called by cmake/EmbedWgsl.cmake. Read next: gpu/wgsl_repeat.h (blocks that are written out first), wgsl_reader.h
// (what is understood), header_writer.h (what is made).
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include "gpu/wgsl_repeat.h"
#include "header_writer.h"

namespace {

using namespace doppler::embed_wgsl;

int fail(const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return 1;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out ? 0 : fail("Cannot write " + path + ".");
}

int make_header(const std::string& root, const std::string& path, const std::string& out, bool compact) {
  const std::string full = root + "/" + path;
  const auto written = read_file(full);
  if (!written) return fail("Cannot read " + full + ".");
  const auto text = doppler::gpu::expand_wgsl(*written);
  if (!text) return fail(full + ": " + text.error());
  const auto file = read_wgsl(*text);
  if (!file) return fail(full + ": " + file.error());
  const auto header = write_header(path, compact ? compact_wgsl(*text) : *text, *file);
  if (!header) return fail(full + ": " + header.error());
  return write_file(out, *header);
}

int print_text(const std::string& path) {
  const auto written = read_file(path);
  if (!written) return fail("Cannot read " + path + ".");
  const auto text = doppler::gpu::expand_wgsl(*written);
  if (!text) return fail(path + ": " + text.error());
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 4 && (args[0] == "header" || args[0] == "compact")) {
    return make_header(args[1], args[2], args[3], args[0] == "compact");
  }
  if (args.size() >= 2 && args[0] == "registry") {
    return write_file(args[1], write_registry({args.begin() + 2, args.end()}));
  }
  if (args.size() == 2 && args[0] == "text") return print_text(args[1]);
  return fail(
      "Usage: embed_wgsl header|compact ROOT FILE.wgsl OUT.h | embed_wgsl registry OUT.cpp FILE.wgsl... | "
      "embed_wgsl "
      "text FILE.wgsl");
}
