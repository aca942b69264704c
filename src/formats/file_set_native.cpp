// The native FileSet: names resolved in one folder, files mapped read-only (base/mapped_file.h).
#include "formats/file_set_native.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/mapped_file.h"

namespace doppler::formats {
namespace {

class MappedSource final : public ByteSource {
 public:
  MappedSource(std::string name, MappedFile file) : name_(std::move(name)), file_(std::move(file)) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return file_.bytes().size(); }
  std::span<const uint8_t> mapped() const override { return file_.bytes(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const auto piece = file_.bytes().subspan(offset, count);
    std::vector<uint8_t> bytes(piece.begin(), piece.end());
    DP_CO_CHECK(file_.check_whole());
    co_return bytes;
  }
  Task<Result<>> ready(uint64_t, uint64_t) const override { co_return file_.check_whole(); }
  void will_read(uint64_t offset, uint64_t count) const override { file_.will_read(offset, count); }
  void done_with(uint64_t offset, uint64_t count) const override { file_.done_with(offset, count); }

 private:
  std::string name_;
  MappedFile file_;
};

// Changes whenever the file is written, replaced or touched.
std::string identity_of(const FileFacts& facts) {
  return format_text("%llx:%llx:%llu:%lld:%lld", static_cast<unsigned long long>(facts.device),
                     static_cast<unsigned long long>(facts.number),
                     static_cast<unsigned long long>(facts.bytes), static_cast<long long>(facts.modified_ns),
                     static_cast<long long>(facts.changed_ns));
}

class NativeFileSet final : public FileSet {
 public:
  NativeFileSet(std::string root, std::string folder, std::string main_file)
      : root_(std::move(root)), folder_(std::move(folder)), main_file_(std::move(main_file)) {}

  const std::string& root() const override { return root_; }
  const std::string& main_file() const override { return main_file_; }

  std::vector<std::string> list() const override {
    std::vector<std::string> names;
    walk_folder(folder_, [&](const FoundName& found) {
      if (found.kind == FileKind::kRegular) names.push_back(found.path);
      return false;
    });
    std::ranges::sort(names);
    return names;
  }

  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    if (!is_name_in_folder(name) || !are_names(name)) {
      co_return fail(ErrorKind::kInvalidInput, "\"%s\" is not a plain file name, so it is not opened in %s.",
                     printable(name).c_str(), root_.c_str());
    }
    const std::string path = folder_ + "/" + name;
    if (!facts_of(path) && (errno == ENOENT || errno == ENOTDIR)) {
      co_return std::unique_ptr<ByteSource>();
    }
    DP_CO_TRY(MappedFile file, MappedFile::open(path));
    co_return std::unique_ptr<ByteSource>(std::make_unique<MappedSource>(path, std::move(file)));
  }

  Result<JoinedFiles> map_joined(std::span<const JoinedPart> parts) override {
    const uint64_t each = parts[0].bytes;
    JoinedFiles joined;
    if (parts.size() > 1 && (!MappedFile::can_join() || each % MappedFile::page_bytes() != 0)) return joined;
    std::vector<std::string> paths;
    for (const JoinedPart& part : parts) {
      paths.push_back(folder_ + "/" + part.file);
      const auto facts = facts_of(paths.back());
      if (!facts) {
        return fail(ErrorKind::kInvalidInput, "%s is missing.", paths.back().c_str());
      }
      if (facts->bytes != part.bytes) {
        return fail(ErrorKind::kInvalidInput, "%s is damaged: it has %llu bytes, but %llu are expected.",
                    paths.back().c_str(), static_cast<unsigned long long>(facts->bytes),
                    static_cast<unsigned long long>(part.bytes));
      }
      joined.identities.push_back(identity_of(*facts));
    }
    DP_TRY(MappedFile file, MappedFile::open_joined(paths, each));
    joined.source = std::make_unique<MappedSource>(folder_, std::move(file));
    return joined;
  }

 private:
  std::string root_, folder_, main_file_;
};

}  // namespace

Result<std::unique_ptr<FileSet>> open_file_set(const std::string& path) {
  const auto facts = path.empty() ? std::nullopt : facts_of(path);
  if (!facts) {
    const int error = path.empty() ? ENOENT : errno;
    if (error == ENOENT)
      return fail(ErrorKind::kIo, "There is no file or folder \"%s\".", printable(path, 300).c_str());
    return fail(ErrorKind::kIo, "Cannot open %s: %s.", printable(path, 300).c_str(), std::strerror(error));
  }
  const std::string root = joined_path("", path);  // with / between its parts: its end names the model
  if (facts->kind == FileKind::kFolder)
    return std::unique_ptr<FileSet>(std::make_unique<NativeFileSet>(root, root, ""));
  if (facts->kind != FileKind::kRegular) {
    return fail(ErrorKind::kIo, "%s is neither a file nor a folder.", printable(path, 300).c_str());
  }
  std::string folder = parent_path(path);
  if (folder.empty()) folder = ".";
  return std::unique_ptr<FileSet>(std::make_unique<NativeFileSet>(root, folder, file_name(path)));
}

}  // namespace doppler::formats
