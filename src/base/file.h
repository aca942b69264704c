// Files as the operating system knows them: an open file, and what is asked about a name. All that is done to files
// goes through here or through folders.h. A function that fails leaves the reason in errno, on every system: the
// callers have sentences of their own. Paths are UTF-8. Not part of the WebAssembly build.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace doppler {

enum class FileKind : uint8_t { kRegular, kFolder, kOther };

struct FileFacts {
  FileKind kind = FileKind::kOther;
  uint64_t bytes = 0;
  uint64_t disk_bytes = 0;                  // what it takes of the disk
  uint64_t device = 0, number = 0;          // together they tell two files apart
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970; changed: content, name or rights
  bool is_same_file(const FileFacts& other) const { return device == other.device && number == other.number; }
};

// Who else may read a file that is made. POSIX: 0644, 0666 less the user's mask, 0600.
enum class FileReaders : uint8_t { kOthersRead, kAsUserSet, kOnlyUser };

struct OpenMode {
  bool reads = true, writes = false;
  bool makes = false;         // it is made if it is not there
  bool empties = false;       // what it held is dropped
  bool appends = false;       // every write goes to the end
  bool follows_links = true;  // false: a link in the place of the file is an error
  bool is_folder = false;     // true: anything else is an error
  bool waits = true;          // false: to open a pipe does not wait for its other end
  FileReaders readers = FileReaders::kOthersRead;
};
inline constexpr OpenMode kToRead{};
inline constexpr OpenMode kToReadFolder{.is_folder = true};
inline constexpr OpenMode kToWriteNew{.reads = false, .writes = true, .makes = true, .empties = true};
inline constexpr OpenMode kToReadAndWrite{.writes = true, .makes = true};

class OpenFile {
 public:
  OpenFile() = default;  // none
  // Neither lets a child process have the file.
  static OpenFile open(const std::string& path, const OpenMode& mode = kToRead);
  // A name inside an open folder; never leads out of it, if mode.follows_links is false.
  static OpenFile open_at(const OpenFile& folder, const std::string& name, const OpenMode& mode);
  // Makes a file beside `path` that only this user may read; its name is put into `made`.
  static OpenFile make_beside(const std::string& path, std::string& made);
  OpenFile(OpenFile&& other) noexcept
      : handle_(std::exchange(other.handle_, kNone)), appends_(other.appends_) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(appends_, other.appends_);
    return *this;
  }
  ~OpenFile() { static_cast<void>(close()); }

  explicit operator bool() const { return handle_ != kNone; }
  bool close();  // false: what was written may be lost

  std::optional<FileFacts> facts() const;
  // At the end of what was written before; a file that appends: at its end.
  bool write(std::span<const uint8_t> bytes);
  bool write(std::string_view text) {
    return write(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  bool write_at(std::span<const uint8_t> bytes, uint64_t offset);
  // Less than asked for only at the end of the file.
  std::optional<size_t> read_at(std::span<uint8_t> bytes, uint64_t offset) const;
  bool resize(uint64_t bytes);
  // To the disk, so that a power cut loses nothing. flush_content() may leave out what is not needed to read it. Both
  // succeed if the file system cannot and need not.
  bool flush();
  bool flush_content();
  // A lock that ends with the process or with the file. False with errno EWOULDBLOCK: another has it.
  bool lock();
  void will_read_in_order() const;
  OpenFile duplicate() const;  // of the same open file
  // A descriptor of the C library; the caller closes it.
  int release_descriptor();

 private:
  static constexpr intptr_t kNone = -1;
  explicit OpenFile(intptr_t handle) : handle_(handle) {}
  friend class MappedFile;

  intptr_t handle_ = kNone;
  bool appends_ = false;  // only Windows needs to know
};

// The facts of the file that the name leads to. Empty: there is no such file, or the system does not tell.
std::optional<FileFacts> facts_of(const std::string& path);
bool is_there(const std::string& path);
// fopen() with a path in UTF-8.
std::FILE* open_stdio(const std::string& path, const char* mode);

// `to` is replaced if it is a file, at one moment.
bool rename_path(const std::string& from, const std::string& to);
// Two folders get each other's names; at one moment where the system can.
bool exchange_folders(const std::string& one, const std::string& other);
bool remove_file(const std::string& path);
// So that the names in it survive a power cut. Some file systems cannot, and need not.
bool flush_folder(const std::string& path);
// The bytes that this user may still write there.
std::optional<uint64_t> free_disk_bytes(const std::string& folder);
// The path without links, with / between its parts.
std::optional<std::string> real_path(const std::string& path);

// Folders that only this user may read. make_private_folder() succeeds if there is a folder already.
bool make_private_folder(const std::string& path);
bool is_private_folder(const std::string& path);
// A private one whose name begins with `prefix`, in the folder for temporary files. Empty: it cannot be made.
std::string make_temporary_folder(std::string_view prefix);

// True if no part of this system takes the name for more than a name in its folder.
bool is_one_name(std::string_view name);
// The same of each of several with / between them.
inline bool are_names(std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    if (!is_one_name(path.substr(0, slash))) return false;
    path.remove_prefix(slash + 1);
  }
  return is_one_name(path);
}

}  // namespace doppler
