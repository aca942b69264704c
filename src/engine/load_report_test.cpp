// Tests the report of a load: the rate, who laid the bytes out, and compilations.
#include "engine/load_report.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace doppler::engine {
namespace {

TEST(LoadReport, SaysWhoDidWhatAndHowFast) {
  LoadReport load{.seconds = 1.5, .weights_seconds = 0.5, .copy_seconds = 0.25, .pipelines_seconds = 1};
  load.repacked_bytes = 2'000'000'000;
  load.uploads = "ring";
  load.pipelines = 28;
  load.blobs_stored = 84;
  EXPECT_EQ(
      load_line(load),
      "load 1.50 s: weights 0.50 s (1.86 GiB, 4.00 GB/s, ring, host copies 0.25 s), kernels 1.00 s (28)");
  load.blobs_found = 84;
  load.blobs_stored = 0;
  load.repacked_bytes = 0;
  load.rearranged_bytes = 1 << 20;
  EXPECT_EQ(load_line(load),
            "load 1.50 s: weights 0.50 s (1.00 MiB, 0.00 GB/s, ring, host copies 0.25 s, 1.00 MiB laid out "
            "by the host), "
            "kernels 1.00 s (28, all from the cache)");
  EXPECT_EQ(to_text(load_json(load)["bytes"]),
            R"({"repacked_by_gpu":0,"copied":0,"rearranged_by_host":1048576})");
}

}  // namespace
}  // namespace doppler::engine
