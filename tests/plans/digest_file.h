// The committed digests (digests.txt) as text and as a table.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace doppler::plans {

struct DigestKey {
  std::string model, lane, fixture,
      plan;  // plan: "decode.greedy"; of a load that is refused "generation" or "logits"
  auto operator<=>(const DigestKey&) const = default;
};

// Each plan's digest and number of commands, "0123456789ab/123", or "refused: " and the reason.
using Digests = std::map<DigestKey, std::string>;

// A heading a model, then a line a plan and digest: "PLAN DIGEST FIXTURE:LANE,LANE FIXTURE:LANE".
std::string to_text(const Digests& digests);
// Reads a text of to_text(); a line that it cannot have written is skipped.
Digests from_text(std::string_view text);

}  // namespace doppler::plans
