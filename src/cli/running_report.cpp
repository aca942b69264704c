#include "cli/running_report.h"

#include <cstdio>

#include "cli/measure.h"

namespace doppler::cli {
namespace {

void show(const std::string& text) {
  end_progress();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void RunningReport::begin() const { show(bench::head_text(report_, shown_)); }

Result<void> RunningReport::add(const bench::Row& row) {
  report_.rows.push_back(row);
  show(bench::row_text(report_, report_.rows.size() - 1, shown_));
  if (output_.empty()) return {};
  const std::string text = bench::to_text(report_, format_);
  return write_file_atomically(output_, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void RunningReport::end() const {
  if (!report_.rows.empty()) show(bench::tail_text(report_, shown_));
  end_progress();
}

}  // namespace doppler::cli
