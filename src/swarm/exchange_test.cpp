// Both sides together in one process: shares that tell the truth and shares that lie, on several loopback addresses,
// and a download from these. Each row of kLies is a lie.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "store/download.h"
#include "swarm/fetch.h"
#include "swarm/share.h"

namespace doppler::swarm {
namespace {

namespace fs = std::filesystem;
using store::Reply;
using store::RequestHead;

// Makes 5 MiB and a bit. No two pieces are alike.
std::string content_of(char seed, size_t bytes = 5 * kPieceBytes + 12'345) {
  std::string text(bytes, seed);
  for (size_t i = 0; i < bytes; i += 977) text[i] = static_cast<char>(i / 977 * 31);
  return text;
}

// A server on its own thread.
class Server {
 public:
  Server(const std::string& host, store::HttpListener::Answerer answer, uint64_t rate = 0) {
    listener_ = *store::HttpListener::open({.host = host, .upload_bytes_per_second = rate, .stop = &stop_},
                                           std::move(answer));
    thread_ = std::thread([this] { ran_ = listener_->run().has_value(); });
  }
  ~Server() {
    stop_ = true;
    thread_.join();
    EXPECT_TRUE(ran_);
  }
  std::string url() const {
    std::string url = listener_->url();
    url.pop_back();
    return url;
  }

 private:
  std::atomic<bool> stop_ = false;
  bool ran_ = false;
  std::unique_ptr<store::HttpListener> listener_;
  std::thread thread_;
};

class ExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "doppler_swarm_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    make_model(content_of('m'));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void make_model(const std::string& content) {
    content_ = content;
    fs::create_directories(folder_ + "/model");
    auto file =
        store::File::open(folder_ + "/model/a.gguf", {.writes = true, .makes = true, .empties = true});
    ASSERT_TRUE(file && file->write_at(text_bytes(content), 0));
    model_ = {.name = "tiny", .folder = folder_ + "/model", .record = {.kind = "gguf", .entry = "a.gguf"}};
    model_.record.files = {
        {.file = "a.gguf", .bytes = content.size(), .sha256 = sha256(text_bytes(content))}};
    share_ = std::make_unique<Share>();
    identity_ = *share_model(*share_, model_, folder_ + "/trees", nullptr);
  }

  Card card() const {
    const std::string path = path_text({.kind = SwarmPath::Kind::kCard, .key = key_of_model(identity_)});
    return *parse_card(*share_->answer({.method = "GET", .path = path, .fields = {}}).text, identity_);
  }

  store::HttpListener::Answerer honest() {
    return [this](const RequestHead& head) { return share_->answer(head); };
  }

  // Shares like a machine that is still fetching and has these pieces.
  void share_pieces(Share& share, std::initializer_list<uint64_t> pieces) {
    share.add_card(card());
    auto file = std::make_shared<SharedFile>(*store::File::open(folder_ + "/model/a.gguf"), content_.size(),
                                             card().files[0].root);
    const Sha256 key = key_of_file(model_.record.files[0].sha256);
    const std::string path = path_text({.kind = SwarmPath::Kind::kProof, .key = key, .run = 0});
    file->add_proof(0, *share_->answer({.method = "GET", .path = path, .fields = {}}).text);
    for (const uint64_t piece : pieces) file->add_piece(piece);
    share.add_file(model_.record.files[0].sha256, file);
  }

  // Answers like a plain server of ranges. The path of the file is "/a.gguf".
  store::HttpListener::Answerer source() {
    return [this](const RequestHead& head) -> Reply {
      const store::RangeRequest range = store::parse_range(head.field("range"), content_.size());
      store::AnswerHead fields(range.answer == store::RangeAnswer::kPart ? 206 : 416);
      if (range.answer != store::RangeAnswer::kPart) return {.fields = std::move(fields), .text = ""};
      fields.set("Content-Range", store::content_range(range.range, content_.size()));
      return {.fields = std::move(fields), .text = content_.substr(range.range.first, range.range.count())};
    };
  }

  // The bytes that lie in the unfinished file, if the download succeeds.
  Result<store::Downloaded> fetch(Fetcher& fetcher, const std::string& url = {}) {
    DP_TRY(const store::DownloadList list, fetcher.list(identity_, {}));
    store::Web web({});
    return store::download(
        web,
        {.url = url, .path = folder_ + "/got", .bytes = list.files[0].bytes, .sha256 = list.files[0].sha256},
        {.peers = &fetcher});
  }
  std::string got() const {
    const auto file = store::File::open(folder_ + "/got.part");
    std::string text(content_.size() + 1, '\0');
    text.resize(*file->read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0));
    return text;
  }
  FetchOptions options(std::vector<std::string> peers) {
    return {.peers = std::move(peers), .stall_seconds = 2};
  }

  std::string folder_, content_;
  store::StoredModel model_;
  std::unique_ptr<Share> share_;
  Sha256 identity_{};
};

TEST_F(ExchangeTest, AModelComesFromOnePeer) {
  for (const bool in_order : {false, true}) {
    Server peer("127.0.0.2", honest());
    FetchOptions some = options({peer.url()});
    some.in_order = in_order;
    Fetcher fetcher(std::move(some));
    const auto done = fetch(fetcher);
    ASSERT_TRUE(done) << done.error().sentence();
    EXPECT_TRUE(done->is_verified);
    EXPECT_EQ(done->peer_bytes, content_.size());
    EXPECT_EQ(got(), content_);
    EXPECT_EQ(fetcher.report()[0].bytes, content_.size());
    fs::remove(folder_ + "/got.part");
    fs::remove(folder_ + "/got.journal");
  }
}

// Lies about a.gguf of "tiny". Each changes an honest reply.
struct Lie {
  const char* what;
  const char* sentence;  // in the reason why the peer is dropped
  void (*change)(const RequestHead& head, const SwarmPath& path, Reply& reply);
};
Reply with_text(int status, std::string text) {
  return {.fields = store::AnswerHead(status), .text = std::move(text)};
}
const Lie kLies[] = {
    {"wrong bytes", "it sent wrong bytes",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind != SwarmPath::Kind::kBytes || !reply.part) return;
       reply.text = std::string(reply.part->count, 'x');
       reply.part.reset();
     }},
    {"a wrong proof", "it sent a wrong proof",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind == SwarmPath::Kind::kProof) (*reply.text)[40] ^= 1;
     }},
    {"a proof that is too long", "more bytes than it was asked for",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind == SwarmPath::Kind::kProof) *reply.text += std::string(32, 'x');
     }},
    {"another root", "another root",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind != SwarmPath::Kind::kOffer) return;
       reply = with_text(
           200,
           offer_text({.bytes = 5 * kPieceBytes + 12'345, .root = Sha256{1}, .pieces = PieceSet(6, true)}));
     }},
    {"no offer", "A peer sent no offer",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind == SwarmPath::Kind::kOffer) reply = with_text(200, "{}");
     }},
    {"another range", "another range",
     [](const RequestHead&, const SwarmPath& path, Reply& reply) {
       if (path.kind != SwarmPath::Kind::kBytes) return;
       store::AnswerHead fields(206);
       fields.set("Content-Range", "bytes 0-0/9");
       reply = {.fields = std::move(fields), .text = "x"};
     }},
};

// If there is only the liar, the download gets no bytes. Beside an honest peer a liar changes nothing. The bytes of the
// file are right in both cases.
TEST_F(ExchangeTest, LiarsAreDroppedAndTheirBytesNeverKept) {
  Server honest_peer("127.0.0.2", honest());
  for (const Lie& lie : kLies) {
    Server liar("127.0.0.3", [&](const RequestHead& head) {
      Reply reply = share_->answer(head);
      if (const auto path = parse_swarm_path(head.path)) lie.change(head, *path, reply);
      return reply;
    });
    Fetcher alone(options({liar.url()}));
    EXPECT_FALSE(fetch(alone)) << lie.what;
    EXPECT_NE(alone.report()[0].dropped.find(lie.sentence), std::string::npos)
        << lie.what << ": " << alone.report()[0].dropped;
    EXPECT_EQ(got(), std::string(content_.size(), '\0')) << lie.what;
    Fetcher both(options({liar.url(), honest_peer.url()}));
    const auto done = fetch(both);
    ASSERT_TRUE(done) << lie.what << ": " << done.error().sentence();
    EXPECT_EQ(got(), content_) << lie.what;
    fs::remove(folder_ + "/got.part");
    fs::remove(folder_ + "/got.journal");
  }
}

// The tree judges the notes of an earlier run. Right pieces are not fetched again, and wrong ones are.
TEST_F(ExchangeTest, AResumedFileIsJudgedPieceByPiece) {
  Server peer("127.0.0.2", honest());
  Fetcher fetcher(options({peer.url()}));
  ASSERT_TRUE(fetch(fetcher));
  {
    auto file = store::File::open(folder_ + "/got.part", {.writes = true});
    ASSERT_TRUE(file->write_at(text_bytes("wrong"), 2 * kPieceBytes));
    auto journal = store::Journal::open(folder_ + "/got.journal", {.bytes = content_.size(),
                                                                   .validator = {},
                                                                   .sha256 = sha256(text_bytes(content_)),
                                                                   .piece_bytes = kPieceBytes});
    ASSERT_TRUE(journal && journal->note(4, 0));
  }
  Fetcher again(options({peer.url()}));
  const auto done = fetch(again);
  ASSERT_TRUE(done) << done.error().sentence();
  EXPECT_EQ(got(), content_);
  EXPECT_EQ(again.report()[0].bytes, 2 * kPieceBytes);
}

TEST_F(ExchangeTest, APeerThatLeavesCostsNothingButThePiece) {
  Server stays("127.0.0.2", honest(), 4 << 20);
  auto leaves = std::make_unique<Server>("127.0.0.3", honest(), 1 << 20);
  Fetcher fetcher(options({stays.url(), leaves->url()}));
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    leaves.reset();
  });
  const auto done = fetch(fetcher);
  end.join();
  ASSERT_TRUE(done) << done.error().sentence();
  EXPECT_EQ(got(), content_);
}

// The second peer gets pieces from the first one while that is still fetching.
TEST_F(ExchangeTest, WhatHasArrivedIsSharedAtOnce) {
  Server origin("127.0.0.2", honest(), 4 << 20);
  Share second;
  Server passes_on("127.0.0.3", [&](const RequestHead& head) { return second.answer(head); });
  FetchOptions some = options({origin.url()});
  some.share = &second;
  Fetcher first(std::move(some));
  const auto done = fetch(first);
  ASSERT_TRUE(done) << done.error().sentence();
  share_ = std::make_unique<Share>();  // the origin has nothing any more
  Fetcher other(options({passes_on.url()}));
  EXPECT_TRUE(other.list(identity_, {})) << "who has the card by its link passes it on";
  const std::string path =
      path_text({.kind = SwarmPath::Kind::kOffer, .key = key_of_file(model_.record.files[0].sha256)});
  const auto offer =
      parse_offer(*second.answer({.method = "GET", .path = path, .fields = {}}).text, content_.size());
  ASSERT_TRUE(offer);
  EXPECT_TRUE(offer->pieces.has_all());
}

// The first peer has half of the file. The rest comes from the source, the tree proves it, and it is offered at once.
TEST_F(ExchangeTest, TheSourceIsAskedForWhatNoPeerHas) {
  Share half;
  share_pieces(half, {0, 2, 4});
  Server peer("127.0.0.3", [&](const RequestHead& head) { return half.answer(head); });
  Server origin("127.0.0.4", source());
  Share own;
  FetchOptions some = options({peer.url()});
  some.share = &own;
  Fetcher fetcher(std::move(some));
  const auto done = fetch(fetcher, origin.url() + "/a.gguf");
  ASSERT_TRUE(done) << done.error().sentence();
  EXPECT_EQ(got(), content_);
  EXPECT_EQ(done->peer_bytes, 3 * kPieceBytes);
  EXPECT_EQ(done->received_bytes, content_.size() - 3 * kPieceBytes);
}

// The source's bytes are not those of the link, so none of its bytes is kept.
TEST_F(ExchangeTest, ALyingSourceIsDropped) {
  Share half;
  share_pieces(half, {0});
  Server peer("127.0.0.3", [&](const RequestHead& head) { return half.answer(head); });
  const std::string right = content_;
  Server origin("127.0.0.4", source());
  content_ = std::string(right.size(), 'x');
  Fetcher fetcher(options({peer.url()}));
  EXPECT_FALSE(fetch(fetcher, origin.url() + "/a.gguf"));
  EXPECT_FALSE(fs::exists(folder_ + "/got.part"));
}

TEST_F(ExchangeTest, AShareAnswersOnlyWhatItsProtocolSays) {
  const std::string key = sha256_hex(key_of_file(model_.record.files[0].sha256));
  const auto status = [&](const std::string& method, const std::string& path, const std::string& range = {}) {
    RequestHead head{.method = method, .path = path, .fields = {}};
    if (!range.empty()) head.fields.emplace_back("range", range);
    return share_->answer(head).fields.end().substr(9, 3);
  };
  const std::string bytes = "/swarm/1/files/" + key + "/bytes";
  EXPECT_EQ(status("GET", bytes, "bytes=0-1048575"), "206");
  EXPECT_EQ(status("GET", bytes, "bytes=0-1048576"), "416") << "more than a piece";
  EXPECT_EQ(status("GET", bytes), "416") << "the whole";
  EXPECT_EQ(status("GET", bytes, "bytes=99999999-"), "416");
  EXPECT_EQ(status("POST", bytes), "405");
  EXPECT_EQ(status("GET", "/swarm/1/files/" + key), "200");
  EXPECT_EQ(status("GET", "/swarm/1/files/" + key + "/proof/0"), "200");
  EXPECT_EQ(status("GET", "/swarm/1/files/" + key + "/proof/1"), "404");
  EXPECT_EQ(status("GET", "/swarm/1/files/" + sha256_hex(model_.record.files[0].sha256)), "404") << "no key";
  EXPECT_EQ(status("GET", "/a.gguf"), "404");
}

TEST_F(ExchangeTest, AFileThatChangedIsNotShared) {
  auto file = store::File::open(folder_ + "/model/a.gguf", {.writes = true});
  ASSERT_TRUE(file->write_at(text_bytes("changed"), 99));
  Share share;
  EXPECT_FALSE(share_model(share, model_, {}, nullptr));
}

}  // namespace
}  // namespace doppler::swarm
