// mapped_file.h by file mappings. The system refuses to cut a file that is mapped, so no range is watched.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/mapped_file.h"
#include "base/system_windows.h"

namespace doppler {

namespace {

// Windows 10 1803 and newer: addresses are reserved for all files, then each takes its part.
using VirtualAlloc2Function = void* WINAPI(HANDLE, void*, SIZE_T, ULONG, ULONG, void*, ULONG);
using MapViewOfFile3Function = void* WINAPI(HANDLE, HANDLE, void*, ULONG64, SIZE_T, ULONG, ULONG, void*,
                                            ULONG);
constexpr ULONG kReserve = 0x2000, kReservePlaceholder = 0x40000, kReplacePlaceholder = 0x4000;
constexpr DWORD kRelease = 0x8000, kPreservePlaceholder = 2;

struct Placeholders {
  VirtualAlloc2Function* reserve = nullptr;
  MapViewOfFile3Function* map = nullptr;
  bool are_there() const { return reserve && map; }
};

template <class Function>
void find(HMODULE library, const char* name, Function*& target) {
  const FARPROC address = library ? ::GetProcAddress(library, name) : nullptr;
  std::memcpy(&target, &address, sizeof target);
}

const Placeholders& placeholders() {
  static const Placeholders found = [] {
    Placeholders out;
    HMODULE library = ::GetModuleHandleW(L"kernelbase.dll");
    find(library, "VirtualAlloc2", out.reserve);
    find(library, "MapViewOfFile3", out.map);
    return out;
  }();
  return found;
}

Unexpected cannot_map(const std::string& path) {
  set_errno();
  return fail(ErrorKind::kIo, "Cannot map %s: %s.", path.c_str(), std::strerror(errno));
}

struct ToMap {
  OpenFile file;
  size_t bytes = 0;
};

Result<ToMap> open_to_map(const std::string& path) {
  ToMap out{.file = OpenFile::open(path)};
  if (!out.file) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  const auto facts = out.file.facts();
  if (!facts || facts->kind != FileKind::kRegular)
    return fail(ErrorKind::kIo, "%s is not a regular file.", path.c_str());
  if (facts->bytes == 0) return fail(ErrorKind::kInvalidInput, "%s is empty.", path.c_str());
  out.bytes = static_cast<size_t>(facts->bytes);
  return out;
}

HANDLE mapping_of(intptr_t file) {
  return ::CreateFileMappingW(reinterpret_cast<HANDLE>(file),  // NOLINT(performance-no-int-to-ptr)
                              nullptr, PAGE_READONLY, 0, 0, nullptr);
}

}  // namespace

uint64_t MappedFile::page_bytes() {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  return info.dwAllocationGranularity;
}

bool MappedFile::can_join() { return placeholders().are_there(); }

Result<MappedFile> MappedFile::open(const std::string& path) {
  DP_TRY(const ToMap whole, open_to_map(path));
  HANDLE mapping = mapping_of(whole.file.handle_);
  void* data = mapping ? ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
  const DWORD reason = ::GetLastError();
  if (mapping) ::CloseHandle(mapping);
  ::SetLastError(reason);
  if (!data) return cannot_map(path);
  return MappedFile(path, static_cast<const uint8_t*>(data), whole.bytes);
}

Result<MappedFile> MappedFile::open_joined(std::span<const std::string> paths, uint64_t each) {
  if (paths.size() == 1) return open(paths[0]);
  const uint64_t page = page_bytes();
  DP_TRY(const ToMap last, open_to_map(paths.back()));
  const size_t total = (paths.size() - 1) * each + last.bytes;
  const size_t reserved = (total + page - 1) / page * page;
  HANDLE process = ::GetCurrentProcess();
  void* data = placeholders().reserve(process, nullptr, reserved, kReserve | kReservePlaceholder,
                                      PAGE_NOACCESS, nullptr, 0);
  if (!data) return cannot_map(paths[0]);
  MappedFile joined(paths[0], static_cast<const uint8_t*>(data), total);
  for (size_t i = 0; i < paths.size(); ++i) {
    DP_TRY(const ToMap part, open_to_map(paths[i]));
    const bool is_last = i + 1 == paths.size();
    if (!is_last ? part.bytes != each : part.bytes != last.bytes || part.bytes > each) {
      return fail(ErrorKind::kInvalidInput, "%s has %zu bytes; %llu were expected.", paths[i].c_str(),
                  part.bytes, static_cast<unsigned long long>(each));
    }
    auto* at = static_cast<uint8_t*>(data) + i * each;
    // A file takes a placeholder of just its pages, so that the rest is cut off first.
    const size_t room = static_cast<size_t>((part.bytes + 4095) / 4096 * 4096);
    const size_t rest = reserved - i * each;
    if (room < rest && !::VirtualFree(at, room, kRelease | kPreservePlaceholder)) return cannot_map(paths[i]);
    HANDLE mapping = mapping_of(part.file.handle_);
    void* mapped = mapping ? placeholders().map(mapping, process, at, 0, room, kReplacePlaceholder,
                                                PAGE_READONLY, nullptr, 0)
                           : nullptr;
    const DWORD reason = ::GetLastError();
    if (mapping) ::CloseHandle(mapping);
    ::SetLastError(reason);
    if (!mapped) return cannot_map(paths[i]);
  }
  return joined;
}

MappedFile::MappedFile(std::string name, const uint8_t* data, size_t size)
    : name_(std::move(name)), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

// Every part is given back for itself: views, and placeholders that no file took.
MappedFile::~MappedFile() {
  const uint8_t* at = data_;
  const uint8_t* const end = data_ + size_;
  while (at && at < end) {
    MEMORY_BASIC_INFORMATION part{};
    if (!::VirtualQuery(at, &part, sizeof part)) return;
    const uint8_t* const next = static_cast<const uint8_t*>(part.BaseAddress) + part.RegionSize;
    if (part.Type == MEM_MAPPED) {
      ::UnmapViewOfFile(at);
    } else if (part.State != MEM_FREE) {
      ::VirtualFree(part.BaseAddress, 0, MEM_RELEASE);
    }
    at = next;
  }
}

Result<> MappedFile::check_whole() const { return {}; }

void MappedFile::will_read(uint64_t offset, uint64_t count) const {
  if (offset >= size_) return;
  WIN32_MEMORY_RANGE_ENTRY range{const_cast<uint8_t*>(data_ + offset),
                                 static_cast<SIZE_T>(std::min<uint64_t>(count, size_ - offset))};
  ::PrefetchVirtualMemory(::GetCurrentProcess(), 1, &range, 0);
}

void MappedFile::done_with(uint64_t /*offset*/, uint64_t /*count*/) const {}  // the system decides

}  // namespace doppler
