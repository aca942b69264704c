// file.h by calls of Windows. Files are shared as on POSIX: others may read, write, rename and remove them meanwhile.
#include "base/file.h"
#include "base/system_windows.h"
// After windows.h, which they need.
#include <fcntl.h>
#include <io.h>
#include <winternl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace doppler {
namespace {

constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr DWORD kLargestPiece = 1u << 30;                  // of one system call
constexpr int64_t kTicksTo1970 = 116'444'736'000'000'000;  // from 1601, each of 100 ns

HANDLE handle_of(intptr_t handle) {
  return reinterpret_cast<HANDLE>(handle);  // NOLINT(performance-no-int-to-ptr)
}
intptr_t number_of(HANDLE handle) { return reinterpret_cast<intptr_t>(handle); }

DWORD access_of(const OpenMode& mode) {
  return (mode.reads ? GENERIC_READ : FILE_READ_ATTRIBUTES) | (mode.writes ? GENERIC_WRITE : 0);
}

uint64_t joined(DWORD high, DWORD low) { return static_cast<uint64_t>(high) << 32 | low; }

int64_t nanoseconds(int64_t ticks) { return (ticks - kTicksTo1970) * 100; }

// Checks on the open file what POSIX's flags ask for. False, with the reason in errno: it must not be used.
bool is_as_asked(HANDLE handle, const OpenMode& mode) {
  BY_HANDLE_FILE_INFORMATION info{};
  if (!::GetFileInformationByHandle(handle, &info)) return true;  // a device
  if (!mode.follows_links && (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    errno = ELOOP;
    return false;
  }
  if (mode.is_folder && (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0) {
    errno = ENOTDIR;
    return false;
  }
  return !mode.empties || ::SetEndOfFile(handle) || set_errno();
}

OVERLAPPED place_of(uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

bool write_all(HANDLE handle, std::span<const uint8_t> bytes, const uint64_t* offset, bool at_end) {
  uint64_t done = 0;
  while (done < bytes.size()) {
    OVERLAPPED place = place_of(at_end ? UINT64_MAX : offset ? *offset + done : 0);
    DWORD count = 0;
    const auto size = static_cast<DWORD>(std::min<uint64_t>(bytes.size() - done, kLargestPiece));
    if (!::WriteFile(handle, bytes.data() + done, size, &count, at_end || offset ? &place : nullptr))
      return set_errno();
    if (count == 0) {
      errno = ENOSPC;
      return false;
    }
    done += count;
  }
  return true;
}

// For the facts of a name: a handle that neither reads nor writes.
OpenMode no_access() { return {.reads = false}; }

}  // namespace

OpenFile OpenFile::open(const std::string& path, const OpenMode& mode) {
  const DWORD disposition = mode.makes ? OPEN_ALWAYS : OPEN_EXISTING;
  const DWORD flags = FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS |
                      (mode.follows_links ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  HANDLE handle =
      ::CreateFileW(wide_path(path).c_str(), access_of(mode), kShared, nullptr, disposition, flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return {};
  }
  OpenFile file(number_of(handle));
  file.appends_ = mode.appends;
  return is_as_asked(handle, mode) ? std::move(file) : OpenFile();
}

// Relative to the folder's handle, so that a link that takes the folder's place meanwhile changes nothing.
OpenFile OpenFile::open_at(const OpenFile& folder, const std::string& name, const OpenMode& mode) {
  if (!is_one_name(name)) {
    errno = ENOENT;
    return {};
  }
  std::wstring text = wide(name);
  UNICODE_STRING path{};
  path.Buffer = text.data();
  path.Length = path.MaximumLength = static_cast<USHORT>(text.size() * sizeof(wchar_t));
  OBJECT_ATTRIBUTES attributes{};
  attributes.Length = sizeof attributes;
  attributes.RootDirectory = handle_of(folder.handle_);
  attributes.ObjectName = &path;
  attributes.Attributes = OBJ_CASE_INSENSITIVE;
  const ULONG options = FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_FOR_BACKUP_INTENT |
                        (mode.follows_links ? 0 : FILE_OPEN_REPARSE_POINT) |
                        (mode.is_folder ? FILE_DIRECTORY_FILE : 0);
  HANDLE handle = nullptr;
  IO_STATUS_BLOCK status{};
  const NTSTATUS result = ::NtCreateFile(&handle, access_of(mode) | SYNCHRONIZE, &attributes, &status,
                                         nullptr, FILE_ATTRIBUTE_NORMAL, kShared,
                                         mode.makes ? FILE_OPEN_IF : FILE_OPEN, options, nullptr, 0);
  if (result < 0) {
    set_errno(::RtlNtStatusToDosError(result));
    return {};
  }
  OpenFile file(number_of(handle));
  file.appends_ = mode.appends;
  return is_as_asked(handle, mode) ? std::move(file) : OpenFile();
}

OpenFile OpenFile::make_beside(const std::string& path, std::string& made) {
  std::random_device random;
  for (;;) {
    made = path + "." + std::to_string(random());
    HANDLE handle = ::CreateFileW(wide_path(made).c_str(), GENERIC_READ | GENERIC_WRITE, kShared, nullptr,
                                  CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle != INVALID_HANDLE_VALUE) return OpenFile(number_of(handle));
    if (::GetLastError() == ERROR_FILE_EXISTS) continue;
    set_errno();
    return {};
  }
}

bool OpenFile::close() {
  if (!*this) return true;
  return ::CloseHandle(handle_of(std::exchange(handle_, kNone))) || set_errno();
}

std::optional<FileFacts> OpenFile::facts() const {
  HANDLE handle = handle_of(handle_);
  BY_HANDLE_FILE_INFORMATION info{};
  if (!::GetFileInformationByHandle(handle, &info)) {
    // A pipe or a device has no more to tell.
    if (::GetFileType(handle) == FILE_TYPE_PIPE || ::GetFileType(handle) == FILE_TYPE_CHAR)
      return FileFacts{};
    set_errno();
    return {};
  }
  FILE_BASIC_INFO times{};
  FILE_STANDARD_INFO sizes{};
  ::GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times);
  ::GetFileInformationByHandleEx(handle, FileStandardInfo, &sizes, sizeof sizes);
  const bool is_folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  return FileFacts{.kind = is_folder ? FileKind::kFolder : FileKind::kRegular,
                   .bytes = joined(info.nFileSizeHigh, info.nFileSizeLow),
                   .disk_bytes = static_cast<uint64_t>(sizes.AllocationSize.QuadPart),
                   .device = info.dwVolumeSerialNumber,
                   .number = joined(info.nFileIndexHigh, info.nFileIndexLow),
                   .modified_ns = nanoseconds(times.LastWriteTime.QuadPart),
                   .changed_ns = nanoseconds(times.ChangeTime.QuadPart)};
}

bool OpenFile::write(std::span<const uint8_t> bytes) {
  return write_all(handle_of(handle_), bytes, nullptr, appends_);
}

bool OpenFile::write_at(std::span<const uint8_t> bytes, uint64_t offset) {
  return write_all(handle_of(handle_), bytes, &offset, false);
}

std::optional<size_t> OpenFile::read_at(std::span<uint8_t> bytes, uint64_t offset) const {
  size_t total = 0;
  while (total < bytes.size()) {
    OVERLAPPED place = place_of(offset + total);
    DWORD count = 0;
    const auto size = static_cast<DWORD>(std::min<uint64_t>(bytes.size() - total, kLargestPiece));
    if (!::ReadFile(handle_of(handle_), bytes.data() + total, size, &count, &place)) {
      if (::GetLastError() == ERROR_HANDLE_EOF) break;
      set_errno();
      return {};
    }
    if (count == 0) break;
    total += count;
  }
  return total;
}

bool OpenFile::resize(uint64_t bytes) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  return ::SetFileInformationByHandle(handle_of(handle_), FileEndOfFileInfo, &end, sizeof end) || set_errno();
}

bool OpenFile::flush() { return ::FlushFileBuffers(handle_of(handle_)) || set_errno(); }
bool OpenFile::flush_content() { return flush(); }

// Locks keep others from reading, so it lies beyond all content.
bool OpenFile::lock() {
  OVERLAPPED place = place_of(uint64_t{INT32_MAX} << 32);
  return ::LockFileEx(handle_of(handle_), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
                      &place) ||
         set_errno();
}

void OpenFile::will_read_in_order() const {}

OpenFile OpenFile::duplicate() const {
  HANDLE copy = nullptr, process = ::GetCurrentProcess();
  if (!::DuplicateHandle(process, handle_of(handle_), process, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
    set_errno();
    return {};
  }
  return OpenFile(number_of(copy));
}

int OpenFile::release_descriptor() { return ::_open_osfhandle(std::exchange(handle_, kNone), _O_BINARY); }

std::optional<FileFacts> facts_of(const std::string& path) {
  const OpenFile file = OpenFile::open(path, no_access());
  return file ? file.facts() : std::nullopt;
}

bool is_there(const std::string& path) {
  return ::GetFileAttributesW(wide_path(path).c_str()) != INVALID_FILE_ATTRIBUTES || set_errno();
}

std::FILE* open_stdio(const std::string& path, const char* mode) {
  return ::_wfopen(wide_path(path).c_str(), wide(mode).c_str());
}

bool rename_path(const std::string& from, const std::string& to) {
  return ::MoveFileExW(wide_path(from).c_str(), wide_path(to).c_str(), MOVEFILE_REPLACE_EXISTING) ||
         set_errno();
}

// In three steps, since the system has none that does it at once. A step that fails is taken back.
bool exchange_folders(const std::string& one, const std::string& other) {
  const std::string aside = one + ".exchanged";
  if (!rename_path(one, aside)) return false;
  if (!rename_path(other, one)) {
    const int reason = errno;
    rename_path(aside, one);
    errno = reason;
    return false;
  }
  return rename_path(aside, other);
}

bool remove_file(const std::string& path) { return ::DeleteFileW(wide_path(path).c_str()) || set_errno(); }

// The journal of the file system keeps names in their order.
bool flush_folder(const std::string& path) {
  return static_cast<bool>(OpenFile::open(path.empty() ? "." : path, kToReadFolder));
}

std::optional<uint64_t> free_disk_bytes(const std::string& folder) {
  ULARGE_INTEGER free{};
  if (::GetDiskFreeSpaceExW(wide_path(folder).c_str(), &free, nullptr, nullptr)) return free.QuadPart;
  set_errno();
  return {};
}

std::optional<std::string> real_path(const std::string& path) {
  HANDLE handle = ::CreateFileW(wide_path(path).c_str(), FILE_READ_ATTRIBUTES, kShared, nullptr,
                                OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return {};
  }
  std::wstring name(::GetFinalPathNameByHandleW(handle, nullptr, 0, FILE_NAME_NORMALIZED), L'\0');
  name.resize(::GetFinalPathNameByHandleW(handle, name.data(), static_cast<DWORD>(name.size()),
                                          FILE_NAME_NORMALIZED));
  ::CloseHandle(handle);
  std::string out = narrow(name);
  if (out.starts_with("\\\\?\\UNC\\")) {
    out = "\\\\" + out.substr(8);
  } else if (out.starts_with("\\\\?\\")) {
    out = out.substr(4);
  }
  std::ranges::replace(out, '\\', '/');
  return out.empty() ? std::nullopt : std::optional(out);
}

std::string make_temporary_folder(std::string_view prefix) {
  std::wstring folder(MAX_PATH + 1, L'\0');
  folder.resize(::GetTempPathW(static_cast<DWORD>(folder.size()), folder.data()));
  std::string begin = narrow(folder);  // with a separator at its end
  std::ranges::replace(begin, '\\', '/');
  std::random_device random;
  for (int tries = 0; !begin.empty() && tries < 100; ++tries) {
    std::string path = begin + std::string(prefix) + std::to_string(random());
    if (!is_there(path) && make_private_folder(path)) return path;
  }
  return {};
}

// Besides separators and streams, names that mean a device and those that the system would shorten.
bool is_one_name(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.back() == '.' || name.back() == ' ') return false;
  const bool has_other = std::ranges::any_of(name, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || std::strchr("/\\:*?\"<>|", c) != nullptr;
  });
  if (has_other) return false;
  std::string stem(name.substr(0, name.find('.')));
  std::ranges::transform(stem, stem.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  static constexpr std::string_view kDevices[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
  const bool is_port = stem.size() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")) &&
                       stem[3] >= '0' && stem[3] <= '9';
  return !is_port && std::ranges::count(kDevices, stem) == 0;
}

}  // namespace doppler
