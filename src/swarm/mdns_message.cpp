#include "swarm/mdns_message.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::swarm {
namespace {

constexpr uint16_t kTypeA = 1, kTypePtr = 12, kTypeTxt = 16, kTypeSrv = 33, kTypeAny = 255;
constexpr uint16_t kClassIn = 1, kClassAny = 255,
                   kTopBit = 0x8000;  // of a class: unicast reply, flush the cache
constexpr uint16_t kIsAnswer = 0x8000, kIsAuthoritative = 0x0400, kOpcode = 0x7800;
constexpr uint32_t kSeconds = 120, kSimpleSeconds = 10;
constexpr size_t kMostNameBytes = 255, kHeaderBytes = 12;
constexpr uint16_t kMostRecords = 256, kMostQuestions = 16;  // of a message that is read
const std::string kList = "_doppler._tcp.local", kAllLists = "_services._dns-sd._udp.local";
const std::string kVersionText = "version=1";

std::string digits_of(uint64_t number) {
  return format_text("%016llx", static_cast<unsigned long long>(number));
}
std::string instance_of(uint64_t number) { return digits_of(number) + "." + kList; }
std::string host_of(uint64_t number) { return "doppler-" + digits_of(number) + ".local"; }

std::optional<uint64_t> number_of_instance(const std::string& name) {
  if (name.size() != 17 + kList.size() || !name.ends_with("." + kList)) return {};
  uint64_t number = 0;
  for (const char c : name.substr(0, 16)) {
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return {};
    number = number << 4 | digit;
  }
  return number;
}

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> message) : message_(message) {}
  bool is_good() const { return is_good_; }
  size_t position() const { return at_; }

  uint16_t u16() {
    const auto two = bytes(2);
    return two.empty() ? uint16_t{0} : static_cast<uint16_t>(two[0] << 8 | two[1]);
  }
  uint32_t u32() {
    const uint32_t high = u16();
    return high << 16 | u16();
  }
  std::span<const uint8_t> bytes(size_t count) {
    if (count > message_.size() - at_) is_good_ = false;
    if (!is_good_) return {};
    at_ += count;
    return message_.subspan(at_ - count, count);
  }
  // Reads a name in lower case, labels joined by dots. A label with a dot in it cannot be one of ours, so the name is
  // then empty.
  std::string name() {
    std::string out;
    bool is_plain = true;
    size_t at = at_, segment = at_, used = 0;
    bool has_jumped = false;
    while (is_good_) {
      if (at >= message_.size()) break;
      const uint8_t length = message_[at];
      if ((length & 0xc0) == 0xc0) {
        if (at + 1 >= message_.size()) break;
        const size_t target = static_cast<size_t>(length & 0x3f) << 8 | message_[at + 1];
        // A pointer may only lead to an earlier place, so there are no circles. It may not lead into the header, which
        // a reply changes.
        if (target < kHeaderBytes || target >= segment) break;
        if (!has_jumped) at_ = at + 2;
        has_jumped = true;
        at = segment = target;
        continue;
      }
      used += 1 + length;
      if (length > 63 || at + 1 + length > message_.size() || used > kMostNameBytes) break;
      if (length == 0) {
        if (!has_jumped) at_ = at + 1;
        return is_plain ? out : "";
      }
      if (!out.empty()) out += '.';
      for (size_t i = at + 1; i <= at + length; ++i) {
        const char c = static_cast<char>(message_[i]);
        is_plain = is_plain && c != '.';
        out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      at += 1 + length;
    }
    is_good_ = false;
    return {};
  }

 private:
  std::span<const uint8_t> message_;
  size_t at_ = 0;
  bool is_good_ = true;
};

struct Header {
  uint16_t id = 0, flags = 0, questions = 0, answers = 0, authorities = 0, additional = 0;
};
std::optional<Header> read_header(Reader& in) {
  Header head;
  for (uint16_t* field :
       {&head.id, &head.flags, &head.questions, &head.answers, &head.authorities, &head.additional})
    *field = in.u16();
  const uint32_t records = head.answers + head.authorities + head.additional + head.questions;
  if (!in.is_good() || (head.flags & kOpcode) != 0 || records > kMostRecords) return {};
  return head;
}

void put16(std::string& out, uint32_t value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}
void put32(std::string& out, uint32_t value) {
  put16(out, value >> 16);
  put16(out, value);
}
void put_name(std::string& out, const std::string& name) {
  for (const std::string& label : split(name, '.')) {
    out += static_cast<char>(label.size());
    out += label;
  }
  out += '\0';
}
void put_record(std::string& out, const std::string& name, uint16_t type, uint16_t klass, uint32_t seconds,
                const std::string& data) {
  put_name(out, name);
  put16(out, type);
  put16(out, klass);
  put32(out, seconds);
  put16(out, static_cast<uint32_t>(data.size()));
  out += data;
}

bool asks_about(const std::string& name, uint16_t type, const MdnsService& self) {
  const auto is = [&](uint16_t wanted) { return type == wanted || type == kTypeAny; };
  return ((name == kList || name == kAllLists) && is(kTypePtr)) ||
         (name == instance_of(self.number) && (is(kTypeSrv) || is(kTypeTxt))) ||
         (name == host_of(self.number) && is(kTypeA));
}

}  // namespace

std::string mdns_question() {
  std::string out;
  for (const uint32_t field : {0, 0, 1, 0, 0, 0}) put16(out, field);
  put_name(out, kList);
  put16(out, kTypePtr);
  put16(out, kClassIn);
  return out;
}

std::optional<MdnsAsked> parse_mdns_question(std::span<const uint8_t> message, const MdnsService& self) {
  Reader in(message);
  const auto head = read_header(in);
  if (!head || (head->flags & kIsAnswer) != 0 || head->questions > kMostQuestions) return {};
  MdnsAsked asked{.id = head->id, .questions = head->questions};
  const size_t begin = in.position();
  for (uint16_t i = 0; i < head->questions; ++i) {
    const std::string name = in.name();
    const uint16_t type = in.u16(), klass = in.u16() & static_cast<uint16_t>(~kTopBit);
    if (!in.is_good()) return {};
    asked.is_ours =
        asked.is_ours || ((klass == kClassIn || klass == kClassAny) && asks_about(name, type, self));
  }
  if (!asked.is_ours) return {};
  asked.question.assign(reinterpret_cast<const char*>(message.data()) + begin, in.position() - begin);
  for (uint16_t i = 0; i < head->answers; ++i) {
    const std::string name = in.name();
    const uint16_t type = in.u16();
    in.u16();
    const uint32_t seconds = in.u32();
    const uint16_t bytes = in.u16();
    Reader data = in;
    in.bytes(bytes);
    if (!in.is_good()) return {};
    if (name == kList && type == kTypePtr && seconds >= kSeconds / 2 &&
        data.name() == instance_of(self.number)) {
      asked.knows_us = true;
    }
  }
  return asked;
}

// It has all records at once, since a machine that asks for one needs the others next.
std::string mdns_answer(const MdnsService& self, const MdnsAsked& asked, bool is_simple) {
  const std::string instance = instance_of(self.number), host = host_of(self.number);
  const uint32_t seconds = is_simple ? kSimpleSeconds : kSeconds;
  const uint16_t own_class = kClassIn | (is_simple ? 0 : kTopBit);
  std::string out;
  put16(out, is_simple ? asked.id : 0);
  put16(out, kIsAnswer | kIsAuthoritative);
  put16(out, is_simple ? asked.questions : 0);
  put16(out, 2);
  put16(out, 0);
  put16(out, 3);
  // Offsets may compress the names in the questions. They hold here too, since the questions stand at the same place.
  if (is_simple) out += asked.question;
  std::string data;
  put_name(data, kList);
  put_record(out, kAllLists, kTypePtr, kClassIn, seconds, data);
  data.clear();
  put_name(data, instance);
  put_record(out, kList, kTypePtr, kClassIn, seconds, data);
  data.clear();
  for (const uint32_t field : {0u, 0u, static_cast<uint32_t>(self.port)})
    put16(data, field);  // priority, weight
  put_name(data, host);
  put_record(out, instance, kTypeSrv, own_class, seconds, data);
  put_record(out, instance, kTypeTxt, own_class, seconds,
             static_cast<char>(kVersionText.size()) + kVersionText);
  put_record(out, host, kTypeA, own_class, seconds, std::string(self.address.begin(), self.address.end()));
  return out;
}

std::vector<MdnsService> parse_mdns_answer(std::span<const uint8_t> message) {
  Reader in(message);
  const auto head = read_header(in);
  if (!head || (head->flags & kIsAnswer) == 0) return {};
  std::vector<MdnsService> found;
  for (uint16_t i = 0; i < head->questions; ++i) {
    in.name();
    in.u32();
  }
  const uint32_t records = uint32_t{head->answers} + head->authorities + head->additional;
  for (uint32_t i = 0; i < records && in.is_good(); ++i) {
    const auto number = number_of_instance(in.name());
    const uint16_t type = in.u16();
    in.u16();
    const uint32_t seconds = in.u32();
    const uint16_t bytes = in.u16();
    Reader data = in;
    in.bytes(bytes);
    if (!in.is_good()) return {};
    if (!number || type != kTypeSrv || seconds == 0 || bytes < 6) continue;
    data.u32();
    const MdnsService service{.number = *number, .port = data.u16()};
    if (service.port != 0 && std::ranges::find(found, service) == found.end()) found.push_back(service);
  }
  return in.is_good() ? found : std::vector<MdnsService>{};
}

}  // namespace doppler::swarm
