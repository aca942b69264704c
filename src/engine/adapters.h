// Opens the adapters that a model is loaded with: those that all answers have, and those that answers ask for by name.
// Read next: named_adapters.h, model/adapter_set.h (which adapters are on the device).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "doppler/doppler.h"
#include "formats/adapters/fit_adapter.h"
#include "model/adapter_arena.h"
#include "model/device_model.h"

namespace doppler::engine {

// The adapters that LoadOptions names, opened.
struct AdapterSources {
  struct File {
    std::unique_ptr<formats::FileSet> files;
    std::string name;  // empty: all answers have it
    float scale = 1;
  };
  std::vector<File> files;
  uint32_t slots = 0, rank = 0;
};

struct NamedAdapter {
  std::string name;
  float scale = 1;
  std::shared_ptr<const formats::FittedAdapter> adapter;
};

// Opens an adapter for answers of a loaded model. Errors: the files are no adapter, or none of this model; the model
// was loaded without room for it.
Task<Result<std::shared_ptr<const formats::FittedAdapter>>> open_fitted(
    std::unique_ptr<formats::FileSet> files, const model::DeviceModel& runner);

// Call this before the model is loaded, if it is to have adapters or room for them. It fills the room that adapters
// need, and gives those with names. If an adapter that all answers have replaces whole tensors, they take the place of
// the checkpoint's.
Task<Result<std::vector<NamedAdapter>>> open_adapters(AdapterSources sources, formats::Checkpoint& checkpoint,
                                                      model::AdapterRoom& room);

}  // namespace doppler::engine
