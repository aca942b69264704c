// RdrrWriter in processes that are killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/rdrr/rdrr_writer.h"
#include "formats/rdrr/test_models.h"
#include "formats/rdrr/write_progress_native.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

// Killed without warning at 50 moments: there is never a folder, or it is whole; in the end it is whole.
TEST(RdrrWriterKill, LeavesAWholeModelOrNone) {
  const TemporaryFolder home;
  finish_small(*must_open(home / "whole"));
  const Files whole = files_of(home / "whole");
  int finished = 0;
  for (int moment = 0; moment < 50; ++moment) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      auto writer = RdrrWriter::open(home / "m", small_outline(), {});
      if (!writer) ::_exit(1);
      finish_small(**writer);
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(moment * 200));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (fs::exists(home / "m")) {
      ++finished;
      EXPECT_EQ(files_of(home / "m"), whole);
      fs::remove_all(home / "m");
    }
  }
  finish_small(*must_open(home / "m"));
  EXPECT_EQ(files_of(home / "m"), whole);
  RecordProperty("finished", finished);
}

}  // namespace
}  // namespace doppler::formats
