#include "engine/paging_report.h"

#include "base/json.h"
#include "base/text.h"

namespace doppler::engine {

std::string paging_line(const ExpertPaging& paging) {
  return format_text(
      "experts: %u of %u a layer on the device, hit rate %.1f %%, %s uploaded in %.2f s, %.2f s for routes",
      paging.slots, paging.experts, paging.hit_rate() * 100, format_bytes(paging.bytes).c_str(),
      paging.upload_seconds, paging.wait_seconds);
}

Json paging_json(const ExpertPaging& paging) {
  return {{"slots", paging.slots},
          {"experts", paging.experts},
          {"uses", paging.uses},
          {"misses", paging.misses},
          {"hit_rate", paging.hit_rate()},
          {"uploaded_bytes", paging.bytes},
          {"upload_seconds", paging.upload_seconds},
          {"wait_seconds", paging.wait_seconds}};
}

ExpertPaging paging_since(const ExpertPaging& before, ExpertPaging now) {
  now.uses -= before.uses;
  now.misses -= before.misses;
  now.bytes -= before.bytes;
  now.upload_seconds -= before.upload_seconds;
  now.wait_seconds -= before.wait_seconds;
  return now;
}

}  // namespace doppler::engine
