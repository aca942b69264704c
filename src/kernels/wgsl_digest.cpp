#include "kernels/wgsl_digest.h"

#include <set>

#include "gpu/wgsl_source.h"

namespace doppler::kernels {
namespace {

constexpr std::string_view kImport = "//!import ";

// For "linear/matvec/matvec_tile.wgsl": "linear/matvec", and "matvec_tile.wgsl".
std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }
std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void add_imported_folders(std::string_view text, std::set<std::string_view>& folders) {
  for (size_t at = text.find(kImport); at != text.npos; at = text.find(kImport, at + 1)) {
    const std::string_view name = text.substr(at + kImport.size());
    folders.insert(folder_of(name.substr(0, name.find_first_of(" \n"))));
  }
}

}  // namespace

std::string wgsl_of_operation(std::string_view variant) {
  const std::string_view operation = variant.substr(0, variant.find('.'));
  const auto is_named = [&](std::string_view path) { return file_of(path).starts_with(operation); };
  const std::string_view kind = operation.substr(0, operation.rfind('_'));
  std::string_view folder;  // empty: files are named
  std::string_view folder_of_kind;
  bool any_named = false;
  for (const gpu::WgslSource& source : gpu::embedded_wgsl()) {
    const std::string_view path = folder_of(source.path);
    if (file_of(path) == operation) folder = path;
    if (file_of(path) == kind) folder_of_kind = path;
    any_named = any_named || is_named(source.path);
  }
  if (folder.empty() && !any_named) folder = folder_of_kind;
  const auto belongs = [&](std::string_view path) {
    return folder.empty() ? any_named && is_named(path) : folder_of(path) == folder;
  };
  std::set<std::string_view> imported;
  for (const gpu::WgslSource& source : gpu::embedded_wgsl()) {
    if (belongs(source.path)) add_imported_folders(source.text, imported);
  }
  for (size_t known = 0; known != imported.size();) {  // what the imported files import
    known = imported.size();
    for (const gpu::WgslSource& source : gpu::embedded_wgsl()) {
      if (imported.contains(folder_of(source.path))) add_imported_folders(source.text, imported);
    }
  }
  std::string all;
  bool found = false;
  for (const gpu::WgslSource& source : gpu::embedded_wgsl()) {
    found = found || belongs(source.path);
    if (!belongs(source.path) && !imported.contains(folder_of(source.path))) continue;
    for (const std::string_view part : {source.path, source.text}) {
      all += part;
      all += '\0';
    }
  }
  return found ? all : std::string();
}

}  // namespace doppler::kernels
