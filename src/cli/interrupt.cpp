#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace doppler::cli {
namespace {

Session* g_session = nullptr;
std::atomic<bool> g_raised = false;

void on_interrupt(int) {
  if (g_session) g_session->cancel();  // sets an atomic flag
  std::signal(SIGINT, SIG_DFL);
}

void on_flagged_interrupt(int) {
  g_raised = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  g_raised = false;
  std::signal(SIGINT, on_flagged_interrupt);
}
InterruptFlag::~InterruptFlag() { std::signal(SIGINT, SIG_DFL); }
bool InterruptFlag::raised() const { return g_raised; }
const std::atomic<bool>* InterruptFlag::flag() const { return &g_raised; }

InterruptGuard::InterruptGuard(Session& session) {
  g_session = &session;
  std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  g_session = nullptr;
}

}  // namespace doppler::cli
