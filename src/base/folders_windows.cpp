// folders.h by calls of Windows, which take UTF-16 and long paths.
#include <cerrno>

#include "base/folders.h"
#include "base/path_native.h"
#include "base/system_windows.h"

namespace doppler {
namespace {

bool is_link(DWORD attributes) { return (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0; }
bool is_folder_like(DWORD attributes) { return (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0; }

// Calls `visit` with a name and its attributes until it returns false.
template <class Visit>
bool for_each_name(const std::string& folder, Visit visit) {
  if (folder.empty()) return set_errno(ERROR_PATH_NOT_FOUND);
  WIN32_FIND_DATAW found{};
  HANDLE search = ::FindFirstFileW(wide_path(folder + "/*").c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) {
    const DWORD reason = ::GetLastError();
    return reason == ERROR_FILE_NOT_FOUND || set_errno(reason);  // not even . and ..: the root of a drive
  }
  bool goes_on = true;
  do {
    const std::string name = narrow(found.cFileName);
    if (name != "." && name != "..") goes_on = visit(name, found.dwFileAttributes);
  } while (goes_on && ::FindNextFileW(search, &found));
  const DWORD reason = goes_on ? ::GetLastError() : ERROR_NO_MORE_FILES;
  const int visit_reason = errno;
  ::FindClose(search);
  if (!goes_on) errno = visit_reason;
  return goes_on && (reason == ERROR_NO_MORE_FILES || set_errno(reason));
}

bool walk(const std::string& folder, const std::string& below,
          const std::function<bool(const FoundName&)>& visit) {
  return for_each_name(folder, [&](const std::string& name, DWORD attributes) {
    const std::string inner = folder + "/" + name;
    FileKind kind = is_folder_like(attributes) ? FileKind::kFolder : FileKind::kRegular;
    if (is_link(attributes)) kind = facts_of(inner).value_or(FileFacts{}).kind;
    const bool enters = visit({below + name, kind}) && kind == FileKind::kFolder && !is_link(attributes);
    return !enters || walk(inner, below + name + "/", visit);
  });
}

// Files that may only be read are removed as on POSIX.
bool remove_name(const std::string& path, DWORD attributes) {
  const std::wstring name = wide_path(path);
  if ((attributes & FILE_ATTRIBUTE_READONLY) != 0)
    ::SetFileAttributesW(name.c_str(), attributes & ~DWORD{FILE_ATTRIBUTE_READONLY});
  return (is_folder_like(attributes) ? ::RemoveDirectoryW(name.c_str()) : ::DeleteFileW(name.c_str())) ||
         set_errno();
}

bool remove_all(const std::string& path, DWORD attributes) {
  if (is_folder_like(attributes) && !is_link(attributes)) {
    std::vector<std::pair<std::string, DWORD>>
        inner;  // gathered first, since a search may miss names meanwhile
    const auto gather = [&](const std::string& name, DWORD its) {
      inner.emplace_back(path + "/" + name, its);
      return true;
    };
    if (!for_each_name(path, gather)) return false;
    for (const auto& [name, its] : inner) {
      if (!remove_all(name, its)) return false;
    }
  }
  return remove_name(path, attributes);
}

}  // namespace

std::filesystem::path native_path(const std::string& text) { return wide(text); }
std::string path_text(const std::filesystem::path& path) { return narrow(path.generic_wstring()); }

bool make_folders(const std::string& path) {
  if (path.empty()) return set_errno(ERROR_PATH_NOT_FOUND);
  if (const auto facts = facts_of(path))
    return facts->kind == FileKind::kFolder || set_errno(ERROR_DIRECTORY);
  const std::string above = parent_path(path);
  if (!above.empty() && above != path && !make_folders(above)) return false;
  if (::CreateDirectoryW(wide_path(path).c_str(), nullptr)) return true;
  const DWORD reason = ::GetLastError();
  return (reason == ERROR_ALREADY_EXISTS && is_folder(path)) ||
         set_errno(reason);  // "a/": its parent is itself
}

bool remove_tree(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(wide_path(path).c_str());
  if (attributes != INVALID_FILE_ATTRIBUTES) return remove_all(path, attributes);
  set_errno();
  return errno == ENOENT;
}

bool copy_file(const std::string& from, const std::string& to, bool replaces) {
  return ::CopyFileW(wide_path(from).c_str(), wide_path(to).c_str(), !replaces) || set_errno();
}

bool link_file(const std::string& from, const std::string& to) {
  return ::CreateHardLinkW(wide_path(to).c_str(), wide_path(from).c_str(), nullptr) || set_errno();
}

bool walk_folder(const std::string& folder, const std::function<bool(const FoundName&)>& visit) {
  return walk(folder, "", visit);
}

}  // namespace doppler
