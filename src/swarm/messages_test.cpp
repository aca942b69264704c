// The messages of peers: written and read again, or refused. A refusal is a row.
#include "swarm/messages.h"

#include <gtest/gtest.h>

#include "swarm/tree.h"

namespace doppler::swarm {
namespace {

const Sha256 kHash = sha256(text_bytes("a model"));

TEST(SwarmPath, ReadsWhatItWrites) {
  using Kind = SwarmPath::Kind;
  for (const SwarmPath& path : {SwarmPath{Kind::kCard, kHash}, SwarmPath{Kind::kOffer, kHash},
                                SwarmPath{Kind::kProof, kHash, 17}, SwarmPath{Kind::kBytes, kHash}}) {
    EXPECT_EQ(parse_swarm_path(path_text(path)), path) << path_text(path);
  }
  const std::string offer = path_text({.kind = Kind::kOffer, .key = kHash});
  const std::string card = path_text({.kind = Kind::kCard, .key = kHash});
  for (const std::string& text :
       {std::string(), std::string("/"), std::string("/swarm/1/files/"), offer + "/", offer + "/proof/",
        offer + "/proof/-1", offer + "/proof/4096", offer + "/proof/99999999999999999999", offer + "/bytes/",
        card + "/bytes", offer.substr(1), offer.substr(0, offer.size() - 1), offer + "0"}) {
    EXPECT_FALSE(parse_swarm_path(text)) << text;
  }
  EXPECT_NE(key_of_file(kHash), key_of_model(kHash));
}

TEST(Offer, ReadsWhatItWrites) {
  for (const uint64_t count : {1u, 4u, 5u, 1000u}) {
    Offer offer{.bytes = count * kPieceBytes, .root = kHash, .pieces = PieceSet(count)};
    for (uint64_t i = 0; i < count; i += 3) offer.pieces.add(i);
    offer.peer = INT64_MAX;
    for (uint64_t i = 1; i < count && offer.coming.size() < kMostComing; i += 3) offer.coming.push_back(i);
    const auto read = parse_offer(offer_text(offer), offer.bytes);
    ASSERT_TRUE(read) << count;
    EXPECT_EQ(read->root, kHash);
    EXPECT_EQ(read->pieces, offer.pieces);
    EXPECT_EQ(read->peer, offer.peer);
    EXPECT_EQ(read->coming, offer.coming);
    EXPECT_LE(offer_text(offer).size(), most_offer_bytes(offer.bytes));
    EXPECT_FALSE(parse_offer(offer_text(offer), offer.bytes - kPieceBytes / 2 - 1)) << "of another size";
  }
  EXPECT_TRUE(
      parse_offer(offer_text({.bytes = 5, .root = kHash, .pieces = PieceSet(1, true)}), 5)->pieces.has_all());
}

TEST(Offer, RefusesEverythingElse) {
  const std::string start = R"({"version":1,"bytes":5242880,"root":")" + sha256_hex(kHash) + "\"";
  ASSERT_TRUE(parse_offer(start + R"(,"pieces":"f8"})", 5 * kPieceBytes));
  std::string too_many = start + R"(,"pieces":"f8","coming":[4)";
  for (size_t i = 0; i < kMostComing; ++i) too_many += ",4";
  too_many += "]}";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), start + "}", start + R"(,"pieces":"f"})",
        start + R"(,"pieces":"f80"})", start + R"(,"pieces":"fc"})", start + R"(,"pieces":"F8"})",
        start + R"(,"pieces":31})", start + R"(,"pieces":"all"}x)",
        R"({"version":2)" + start.substr(12) + R"(,"pieces":"all"})",
        start + R"(,"pieces":"all","more":")" + std::string(2100, 'x') + "\"}",
        start + R"(,"pieces":"f8","coming":[5]})", start + R"(,"pieces":"f8","coming":[-1]})",
        start + R"(,"pieces":"f8","coming":4})", start + R"(,"pieces":"f8","coming":["4"]})",
        start + R"(,"pieces":"f8","peer":-1})", start + R"(,"pieces":"f8","peer":"1"})", too_many}) {
    const auto offer = parse_offer(text, 5 * kPieceBytes);
    ASSERT_FALSE(offer) << text;
    EXPECT_TRUE(offer.error().sentence().starts_with("A peer sent ")) << offer.error().sentence();
  }
}

TEST(Card, ReadsWhatItWritesAndOnlyThat) {
  const Card card{.name = "tiny",
                  .kind = "gguf",
                  .entry = "a.gguf",
                  .files = {{.file = "a.gguf", .bytes = 7, .sha256 = kHash, .root = key_of_file(kHash)}}};
  const std::string text = card_text(card);
  const auto identity_of = [](const std::string& written) { return sha256(text_bytes(written)); };
  const auto read = parse_card(text, identity_of(text));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "tiny");
  EXPECT_EQ(read->files[0].root, key_of_file(kHash));
  EXPECT_FALSE(parse_card(text + " ", identity_of(text))) << "not the card of the link";
  const auto refused = [&](auto change) {
    Card wrong = card;
    change(wrong);
    const std::string written = card_text(wrong);
    EXPECT_FALSE(parse_card(written, identity_of(written))) << written;
  };
  refused([](Card& c) { c.name = "../up"; });
  refused([](Card& c) { c.kind = "exe"; });
  refused([](Card& c) { c.entry = "b.gguf"; });
  refused([](Card& c) { c.files.clear(); });
  refused([](Card& c) { c.files[0].file = "../a.gguf"; });
  refused([](Card& c) { c.files[0].bytes = kMostFileBytes + 1; });
  refused([](Card& c) { c.files.push_back(c.files[0]); });
}

TEST(Link, IsSixtyFourDigits) {
  EXPECT_EQ(parse_link(link_of(kHash)), kHash);
  EXPECT_FALSE(parse_link("swarm:12"));
  EXPECT_FALSE(parse_link(sha256_hex(kHash)));
}

TEST(Peer, AddressesAreHostsAndPorts) {
  EXPECT_EQ(*peer_url("192.168.1.5"), "http://192.168.1.5:8019");
  EXPECT_EQ(*peer_url("teacher.local:99"), "http://teacher.local:99");
  EXPECT_EQ(*peer_url("[::1]:7"), "http://[::1]:7");
  for (const char* text : {"", ":80", "a:", "a:0", "a:65536", "a:1:2", "::1", "[::1", "[]:1", "a/b", "a@b",
                           "a b", "http://a", "a#b", "a?b", "[a/b]:1", "[::1]x:1"}) {
    EXPECT_FALSE(peer_url(text)) << text;
  }
}

}  // namespace
}  // namespace doppler::swarm
