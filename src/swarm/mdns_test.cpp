// Multicast DNS: questions and answers, refusals, and both sides over the loopback interface.
#include <gtest/gtest.h>

#include <chrono>

#include "base/sha256.h"
#include "swarm/nearby.h"

namespace doppler::swarm {
namespace {

const MdnsService kSelf{.number = 0x0123456789abcdef, .port = 8019, .address = {192, 168, 1, 20}};

std::string with(std::string message, size_t at, char byte) {
  message[at] = byte;
  return message;
}
// A question for a name, in the form of another program.
std::string question(const std::string& labels, char type, char class_high = 0) {
  return std::string("\0\7\0\0\0\1\0\0\0\0\0\0", 12) + labels + std::string("\0\0", 2) + type + class_high +
         '\1';
}

TEST(Mdns, AnswersItsOwnQuestion) {
  const auto asked = parse_mdns_question(text_bytes(mdns_question()), kSelf);
  ASSERT_TRUE(asked && asked->is_ours);
  EXPECT_FALSE(asked->knows_us);
  for (const bool is_simple : {false, true}) {
    const std::string answer = mdns_answer(kSelf, *asked, is_simple);
    const std::vector<MdnsService> found = parse_mdns_answer(text_bytes(answer));
    ASSERT_EQ(found.size(), 1u) << is_simple;
    EXPECT_EQ(found[0], (MdnsService{.number = kSelf.number, .port = kSelf.port}));
    EXPECT_TRUE(parse_mdns_question(text_bytes(answer), kSelf) == std::nullopt) << "an answer is no question";
  }
}

TEST(Mdns, AnswersWhatOtherProgramsAsk) {
  const std::string list = "\x08_doppler\4_tcp\5local", upper = "\x08_DOPPLER\4_TCP\5LOCAL";
  const std::string instance =
                        "\x10"
                        "0123456789abcdef" +
                        list,
                    host =
                        "\x18"
                        "doppler-0123456789abcdef\5local";
  const std::string lists = "\x09_services\7_dns-sd\4_udp\5local";
  struct Row {
    std::string message;
    bool is_ours;
  };
  for (const Row& row :
       {Row{question(list, 12), true}, Row{question(upper, 12), true}, Row{question(list, '\xff'), true},
        Row{question(list, 12, '\x80'), true}, Row{question(lists, 12), true},
        Row{question(instance, 33), true}, Row{question(instance, 16), true}, Row{question(host, 1), true},
        Row{question(list, 33), false}, Row{question(host, 28), false},
        Row{question("\4_ipp\4_tcp\5local", 12), false},
        Row{question("\x0d_doppler._tcp\5local", 12), false}}) {
    EXPECT_EQ(parse_mdns_question(text_bytes(row.message), kSelf).has_value(), row.is_ours) << row.message;
  }
}

TEST(Mdns, WhoKnowsTheServiceGetsNoAnswer) {
  const std::string list("\x08_doppler\4_tcp\5local", 20);
  std::string message = question(list, 12);
  message[7] =
      1;  // one known answer: the list's name as a pointer to the question, the instance with one at its end
  const std::string answer(
      "\xc0\x0c\0\x0c\0\1\0\0\0\x78\0\x13\x10"
      "0123456789abcdef"
      "\xc0\x0c",
      31);
  const auto asked = parse_mdns_question(text_bytes(message + answer), kSelf);
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->knows_us);
  EXPECT_FALSE(parse_mdns_question(text_bytes(message + with(answer, 9, 59)), kSelf)->knows_us)
      << "it is old";
  EXPECT_FALSE(parse_mdns_question(text_bytes(message + with(answer, 13, '1')), kSelf)->knows_us)
      << "another";
}

TEST(Mdns, RefusesWhatIsCutOrTurnsInCircles) {
  const auto asked = parse_mdns_question(text_bytes(mdns_question()), kSelf);
  const std::string answer = mdns_answer(kSelf, *asked, true);
  for (size_t size = 0; size < answer.size(); ++size) {
    EXPECT_TRUE(parse_mdns_answer(text_bytes(answer.substr(0, size))).empty()) << size;
  }
  for (size_t size = 0; size < mdns_question().size(); ++size) {
    EXPECT_FALSE(parse_mdns_question(text_bytes(mdns_question().substr(0, size)), kSelf)) << size;
  }
  EXPECT_FALSE(parse_mdns_question(text_bytes(question("\xc0\x0c", 12)), kSelf)) << "a name that is itself";
  EXPECT_FALSE(parse_mdns_question(text_bytes(with(mdns_question(), 4, '\x7f')), kSelf)) << "too many";
  EXPECT_FALSE(parse_mdns_question(text_bytes(with(mdns_question(), 2, '\x08')), kSelf)) << "another opcode";
}

TEST(Mdns, AMachineIsFoundByItsAnnouncement) {
  auto announcer = Announcer::open("127.0.0.2", 4711, 99);
  if (!announcer) GTEST_SKIP() << announcer.error().sentence();
  const auto finder = *Finder::open(7), same_machine = *Finder::open(99);
  std::vector<std::string> found;
  for (int i = 0; i < 100 && found.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (std::string& one : finder->take()) {
      if (one == "127.0.0.2:4711") found.push_back(std::move(one));
    }
  }
  EXPECT_EQ(found.size(), 1u);
  for (const std::string& one : same_machine->take()) EXPECT_NE(one, "127.0.0.2:4711");
  EXPECT_FALSE(Announcer::open("203.0.113.9", 1, 1));
}

}  // namespace
}  // namespace doppler::swarm
