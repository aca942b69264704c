// Fuzz target: the HTTP fields and addresses that strangers send, to the client and to the server.
#include <cstdlib>
#include <string_view>

#include "store/http_headers.h"
#include "store/hub.h"
#include "store/model_store.h"
#include "store/url.h"

using namespace doppler::store;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kSize = 1000;
  if (const auto range = parse_content_range(text); range && range->range) {
    if (range->range->first > range->range->last) std::abort();
    if (range->total && range->range->last >= *range->total) std::abort();
  }
  const RangeRequest asked = parse_range(text, kSize);
  if (asked.answer == RangeAnswer::kPart &&
      (asked.range.first > asked.range.last || asked.range.last >= kSize)) {
    std::abort();
  }
  parse_retry_after(text, 0);
  etag_list_names(text, "\"abc\"");
  if (const auto tag = strong_etag(text); tag && tag->find_first_of("\r\n ") != std::string::npos)
    std::abort();
  if (const auto url = parse_url(text)) {
    if (const auto name = file_name_of(*url); name && !is_safe_file_name(*name)) std::abort();
    hub_name_of_page(url->path);
  }
  shown_url(text);
  const std::string name = store_name_of(text);
  if (!name.empty() && !is_store_name(name)) std::abort();
  if (const auto hub = parse_hub_name(text); hub && hub->repo.find("..") == 0) std::abort();
  return 0;
}
