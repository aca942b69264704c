// The adapters of a generation: one, or several with a scale each.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "formats/adapters/fit_adapter.h"

namespace doppler::model {

struct AdapterPart {
  std::shared_ptr<const formats::FittedAdapter> adapter;
  float scale = 1;  // of the whole adapter, times its own
};

struct AdapterMix {
  std::vector<AdapterPart> parts;

  // The tokens that switch an adapter on (aLoRA). Empty: it is in force everywhere.
  const std::vector<uint32_t>& invocation_tokens() const {
    static const std::vector<uint32_t> kNone;
    return parts.size() == 1 ? parts[0].adapter->invocation_tokens : kNone;
  }
  // Mixes with equal keys are the same. A key has the serial numbers of adapters and the bits of scales.
  std::vector<uint32_t> key() const {
    std::vector<uint32_t> out;
    for (const AdapterPart& part : parts) {
      out.push_back(part.adapter->serial);
      out.push_back(std::bit_cast<uint32_t>(part.scale));
    }
    return out;
  }
};

}  // namespace doppler::model
