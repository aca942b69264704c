/* Wine 8 lacks bcryptprimitives.dll, which libraries written in Rust need for this one function. The tests put this
   library into their folder of Wine; Windows has its own. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
  const ULONG most = 1u << 20;
  while (count > 0) {
    const ULONG now = count < most ? (ULONG)count : most;
    if (!RtlGenRandom(bytes, now)) return FALSE;
    bytes += now;
    count -= now;
  }
  return TRUE;
}
