// The adapters that a generation wants: one, or several at once with a scale each.
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
  float scale = 1;  // of the whole adapter, besides its own
};

struct AdapterMix {
  std::vector<AdapterPart> parts;

  // The tokens from which on an adapter is in force (aLoRA); empty: everywhere.
  const std::vector<uint32_t>& invocation_tokens() const {
    static const std::vector<uint32_t> kNone;
    return parts.size() == 1 ? parts[0].adapter->invocation_tokens : kNone;
  }
  // Two mixes with equal keys are the same: adapters by their serial numbers, scales by their bits.
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
