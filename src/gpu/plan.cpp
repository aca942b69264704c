// Plans as text and as numbers; the words are explained in plan.h.
#include "gpu/plan.h"

#include "base/text.h"

namespace doppler::gpu {

uint32_t Plan::dispatch_count() const {
  uint32_t count = 0;
  for (size_t at = 0; at + kPlanCommandWords <= words.size(); at += kPlanCommandWords) {
    count += words[at] == kDispatch ? 1 : 0;
  }
  return count;
}

std::string describe(const Plan& plan) {
  std::string text = format_text("plan %s, %u commands, up to %u rows\n", plan.name.c_str(),
                                 static_cast<uint32_t>(plan.words.size() / kPlanCommandWords), plan.max_rows);
  for (size_t i = 0; (i + 1) * kPlanCommandWords <= plan.words.size(); ++i) {
    const uint32_t* w = plan.words.data() + i * kPlanCommandWords;
    const bool named = i < plan.entries.size();
    const char* op_label = named ? plan.entries[i].op_label.c_str() : "";
    if (w[0] == kCopy) {
      text += format_text("%zu copy %s: buffer %u+%llu -> buffer %u+%llu, %llu bytes%s\n", i, op_label, w[1],
                          w[2] * 4ull, w[3], w[4] * 4ull, w[5] * 4ull, w[7] ? " a row" : "");
      continue;
    }
    const uint32_t rows_per_group = w[6] & 0x0FFFFFFFu;
    std::string grid[3] = {std::to_string(w[3]), std::to_string(w[4]), std::to_string(w[5])};
    if (rows_per_group) grid[(w[6] >> 28) % 3] = format_text("rows/%u", rows_per_group);
    text += format_text("%zu %s %s: pipeline %u, group %u, grid %s x %s x %s\n", i,
                        named ? plan.entries[i].name.c_str() : "dispatch", op_label, w[1], w[2],
                        grid[0].c_str(), grid[1].c_str(), grid[2].c_str());
  }
  return text;
}

}  // namespace doppler::gpu
