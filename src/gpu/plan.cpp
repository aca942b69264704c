// Plans as text and as numbers; the words are explained in plan.h.
#include "gpu/plan.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::gpu {

uint32_t Plan::dispatch_count() const {
  uint32_t count = 0;
  for (size_t at = 0; at + kPlanCommandWords <= words.size(); at += kPlanCommandWords) {
    count += words[at] == kDispatch ? 1 : 0;
  }
  return count;
}

Plan spliced(const Plan& base, uint32_t first, uint32_t last, const Plan& with) {
  const auto command = [](const std::vector<uint32_t>& words, uint32_t index) {
    return words.begin() + static_cast<ptrdiff_t>(size_t{index} * kPlanCommandWords);
  };
  Plan out{.name = with.name, .max_rows = base.max_rows, .words = {}, .entries = {}, .parts = base.parts};
  out.words.assign(base.words.begin(), command(base.words, first));
  out.words.insert(out.words.end(), with.words.begin(), with.words.end());
  out.words.insert(out.words.end(), command(base.words, last), base.words.end());
  out.entries.assign(base.entries.begin(), base.entries.begin() + first);
  out.entries.insert(out.entries.end(), with.entries.begin(), with.entries.end());
  out.entries.insert(out.entries.end(), base.entries.begin() + last, base.entries.end());
  // The scratch of both has numbers of its own.
  uint32_t next = 0;
  for (const PlanEntry& entry : base.entries) {
    for (const uint32_t tensor : entry.tensors)
      next = tensor == kNotScratch ? next : std::max(next, tensor + 1);
  }
  for (size_t i = first; i < first + with.entries.size(); ++i) {
    for (uint32_t& tensor : out.entries[i].tensors) tensor += tensor == kNotScratch ? 0 : next;
  }
  for (PlanPart& part : out.parts) {
    if (part.first >= last) part.first += static_cast<uint32_t>(with.entries.size()) - (last - first);
  }
  return out;
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
