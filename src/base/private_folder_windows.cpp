// Folders of file.h that only this user may read: access control lists in place of POSIX's rights.
#include "base/file.h"
#include "base/system_windows.h"
// After windows.h, which they need.
#include <aclapi.h>
#include <sddl.h>

#include <cerrno>

namespace doppler {
namespace {

// Rights for the owner and the system, and none from the folder above.
constexpr const wchar_t* kOwnerOnly = L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)";

bool is_of_many(PSID who) {
  return ::IsWellKnownSid(who, WinWorldSid) || ::IsWellKnownSid(who, WinBuiltinUsersSid) ||
         ::IsWellKnownSid(who, WinAuthenticatedUserSid) || ::IsWellKnownSid(who, WinBuiltinGuestsSid);
}

bool lets_many_read(PACL list) {
  if (!list) return true;  // none: everybody
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!::GetAce(list, i, &entry)) return true;
    auto* allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if (allowed->Header.AceType == ACCESS_ALLOWED_ACE_TYPE && is_of_many(&allowed->SidStart)) return true;
  }
  return false;
}

}  // namespace

bool make_private_folder(const std::string& path) {
  SECURITY_ATTRIBUTES attributes{};
  attributes.nLength = sizeof attributes;
  if (!::ConvertStringSecurityDescriptorToSecurityDescriptorW(kOwnerOnly, SDDL_REVISION_1,
                                                              &attributes.lpSecurityDescriptor, nullptr))
    return set_errno();
  const bool is_made = ::CreateDirectoryW(wide_path(path).c_str(), &attributes);
  const DWORD reason = ::GetLastError();
  ::LocalFree(attributes.lpSecurityDescriptor);
  if (is_made) return true;
  const auto facts = reason == ERROR_ALREADY_EXISTS ? facts_of(path) : std::nullopt;
  if (facts && facts->kind == FileKind::kFolder) return true;
  if (!facts) return set_errno(reason);
  errno = ENOTDIR;
  return false;
}

bool is_private_folder(const std::string& path) {
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (::GetNamedSecurityInfoW(wide_path(path).data(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr,
                              nullptr, &list, nullptr, &descriptor) != ERROR_SUCCESS)
    return false;
  const bool is_private = !lets_many_read(list);
  ::LocalFree(descriptor);
  return is_private;
}

}  // namespace doppler
