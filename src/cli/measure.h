// Shared by bench, profile and (the cadence) run: a model whose context holds the workload, the device's ceilings, and
// the report's destination.
#pragma once

#include <string>

#include "bench/report.h"
#include "cli/common.h"

namespace doppler::cli {

// Loads the model with the context of --ctx. Without that flag the context is the usual one, or `positions` if that is
// more. The model drafts only if --draft names a drafter.
Result<Model> load_for(const ModelFlags& given, uint64_t positions);

// The program, its commit and the flags' preset, now.
bench::Origin origin_of(const ModelFlags& flags);
// Errors: the flags' preset does not serve the intent.
Result<void> check_preset(const ModelFlags& flags, bench::Intent intent);

// Measures the device's ceilings; says so on a terminal, since it takes a second.
Result<kernels::Ceilings> measure_ceilings(Model& model);

// Clears the progress line on a terminal.
void end_progress();
// Error: more steps than a ticket may have.
Result<void> check_cadence(const bench::Cadence& cadence);

// The reason why a report could not be written to `file` in the end, found before anything is measured; empty: no file.
Result<void> check_report_file(const std::string& file);
// `report` to standard output; with a file, the report goes there and what a person reads to standard output.
// Returns the verb's exit code.
int deliver(const std::string& file, const std::string& report, const std::string& readable);

}  // namespace doppler::cli
