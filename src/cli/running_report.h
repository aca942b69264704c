// A bench report while its rows come: each row is shown, and the file is written anew, when it is measured, so that a
// run that is interrupted keeps its rows.
#pragma once

#include <string>

#include "bench/report.h"

namespace doppler::cli {

class RunningReport {
 public:
  // output: the file that gets `format`, while standard output gets markdown; empty: none.
  RunningReport(bench::Report report, bench::Format format, std::string output)
      : report_(std::move(report)),
        format_(format),
        shown_(output.empty() ? format : bench::Format::kMarkdown),
        output_(std::move(output)) {}

  void begin() const;
  Result<void> add(const bench::Row& row);
  void end() const;  // does nothing if no row came

 private:
  bench::Report report_;
  bench::Format format_, shown_;
  std::string output_;
};

}  // namespace doppler::cli
