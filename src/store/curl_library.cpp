#include "store/curl_library.h"

#include <mutex>

#include "base/shared_library.h"

namespace doppler::store {
namespace {

// On Linux the name with OpenSSL, then the one with GnuTLS: both are Debian's and Ubuntu's, with one interface. On
// Windows a library that lies beside the program, then the system's. On macOS the system's.
constexpr const char* kNames[] = {"libcurl.so.4",  "libcurl-gnutls.so.4", "libcurl-x64.dll",
                                  "libcurl-4.dll", "libcurl.dll",         "/usr/lib/libcurl.4.dylib"};

template <class Function>
bool find(const SharedLibrary& library, const char* name, Function** out) {
  return library.find(name, *out);
}

Result<CurlLibrary> open() {
  SharedLibrary library;
  std::string reason;
  for (const char* name : kNames) {
    if (!library) library = SharedLibrary::open(name, reason);
  }
  if (!library) {
    return fail(ErrorKind::kUnsupported,
                "Downloading needs libcurl, which this machine lacks; install it (Debian, Ubuntu: apt-get "
                "install libcurl4).");
  }
  CurlLibrary c{};
  const bool complete =
      find(library, "curl_global_init", &c.global_init) && find(library, "curl_easy_init", &c.easy_init) &&
      find(library, "curl_easy_cleanup", &c.easy_cleanup) &&
      find(library, "curl_easy_setopt", &c.easy_setopt) &&
      find(library, "curl_easy_getinfo", &c.easy_getinfo) &&
      find(library, "curl_easy_strerror", &c.easy_strerror) &&
      find(library, "curl_multi_init", &c.multi_init) &&
      find(library, "curl_multi_cleanup", &c.multi_cleanup) &&
      find(library, "curl_multi_add_handle", &c.multi_add_handle) &&
      find(library, "curl_multi_remove_handle", &c.multi_remove_handle) &&
      find(library, "curl_multi_perform", &c.multi_perform) &&
      find(library, "curl_multi_poll", &c.multi_poll) &&
      find(library, "curl_multi_info_read", &c.multi_info_read) &&
      find(library, "curl_multi_strerror", &c.multi_strerror) &&
      find(library, "curl_slist_append", &c.slist_append) &&
      find(library, "curl_slist_free_all", &c.slist_free_all) && find(library, "curl_url", &c.url) &&
      find(library, "curl_url_cleanup", &c.url_cleanup) && find(library, "curl_url_set", &c.url_set) &&
      find(library, "curl_url_get", &c.url_get) && find(library, "curl_free", &c.free);
  if (!complete) {
    return fail(
        ErrorKind::kUnsupported,
        "The libcurl of this machine lacks functions that downloading needs; 7.85 or newer has them.");
  }
  if (c.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return fail(ErrorKind::kInternal, "libcurl could not be started.");
  }
  return c;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::load() {
  static std::once_flag once;
  static Result<CurlLibrary> library = CurlLibrary{};
  std::call_once(once, [] { library = open(); });
  if (!library) return forward(library.error());
  return &*library;
}

}  // namespace doppler::store
