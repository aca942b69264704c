// Fuzz target: messages of multicast DNS from the network (mdns_message.h).
#include <cstdlib>

#include "swarm/mdns_message.h"

using namespace doppler::swarm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MdnsService self{.number = 0x0123456789abcdef, .port = 8019, .address = {192, 168, 1, 20}};
  for (const MdnsService& found : parse_mdns_answer({data, size})) {
    if (found.port == 0) std::abort();
  }
  const auto asked = parse_mdns_question({data, size}, self);
  if (!asked) return 0;
  if (!asked->is_ours) std::abort();
  const std::string answer = mdns_answer(self, *asked, true);
  const auto found = parse_mdns_answer({reinterpret_cast<const uint8_t*>(answer.data()), answer.size()});
  if (answer.size() <= kMostMdnsBytes && (found.size() != 1 || found[0].number != self.number)) std::abort();
  return 0;
}
