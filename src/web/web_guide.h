// A grammar that the JavaScript host keeps (web/grammars.mjs), as the scheduler asks for it.
#pragma once

#include "engine/scheduler/guide.h"

namespace doppler::web {

class WebGuide final : public engine::Guide {
 public:
  // number: the host's, of a matcher at the place where the answer goes on.
  WebGuide(uint32_t number, uint32_t vocab_size) : number_(number), vocab_size_(vocab_size) {}

  Result<std::vector<uint32_t>> allowed() override;
  Result<bool> accept(uint32_t token) override;

 private:
  uint32_t number_, vocab_size_;
};

}  // namespace doppler::web
