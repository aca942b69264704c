// For the _windows files: the system's header, its texts in UTF-16, and its errors as errno.
#pragma once

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string>
#include <string_view>

namespace doppler {

std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);
// For calls that take paths: absolute and prefixed if it is longer than the usual 260 characters.
std::wstring wide_path(const std::string& path);
// Puts the last error, or the given one, into errno; returns false.
bool set_errno(DWORD error = ::GetLastError());

}  // namespace doppler
