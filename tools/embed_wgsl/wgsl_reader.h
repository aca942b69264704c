// Reads from a WGSL file what the host must agree with: imports, the members of `struct Params`, the bindings
// of group 0. It is a scanner for these declarations, not a WGSL parser: the shader compiler checks the rest.
// Read next: header_writer.h, which turns the result into C++.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::embed_wgsl {

struct Member {
  std::string name;
  std::string type;  // u32, i32 or f32
};

struct Binding {
  uint32_t number = 0;
  std::string name;
  std::string kind;  // the enumerator of gpu::BindKind: kUniform, kRead, kReadWrite
};

struct WgslFile {
  std::vector<std::string>
      imports;  // of the lines `//!import <name>` (or `<name> as <prefix>`) that open the file
  bool has_params = false;
  std::vector<Member> params;
  std::vector<Binding> bindings;  // ordered by number, without gaps
};

// The error is one sentence with the line it is about, without the file's name.
std::expected<WgslFile, std::string> read_wgsl(std::string_view text);

// The text without comments, empty lines and blanks that part no tokens; lines that import stay. A line that was
// indented stays so: the composer takes the others for declarations at module scope.
std::string compact_wgsl(std::string_view text);

}  // namespace doppler::embed_wgsl
