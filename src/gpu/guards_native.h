// Keeps what a provider does to the process away from the user: Dawn warns on stderr while an adapter is
// requested, wgpu-native aborts the process when its device is lost.
#pragma once

#include <string>

namespace doppler::gpu {

// A program of Doppler's own calls this once, before it opens a device. Environment variables may then choose among
// Dawn's devices, and what providers print while a device opens goes to the debug log. In other programs the library
// does neither.
void own_process();
bool owns_process();

// While it lives, everything written to the stderr file descriptor goes to the debug log instead, if the process is
// Doppler's own. That holds for the whole process, so it lives only for the few milliseconds of opening a device.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;

 private:
  int saved_ = -1;  // descriptors
  int file_ = -1;
};

// Marks that this thread is inside a call that wgpu-native may abort in. An abort then ends the program with
// exit code 1 after one sentence; an abort from anywhere else goes its usual way.
class AbortGuard {
 public:
  AbortGuard();
  ~AbortGuard();
  AbortGuard(const AbortGuard&) = delete;
  AbortGuard& operator=(const AbortGuard&) = delete;

  static void install();  // installs the signal handler once, unless the application has its own
};

}  // namespace doppler::gpu
