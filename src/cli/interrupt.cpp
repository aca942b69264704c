#include "cli/interrupt.h"

#include <csignal>

namespace doppler::cli {
namespace {

Session* g_session = nullptr;

void on_interrupt(int) {
  if (g_session) g_session->cancel();  // sets an atomic flag
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard(Session& session) {
  g_session = &session;
  std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  g_session = nullptr;
}

}  // namespace doppler::cli
