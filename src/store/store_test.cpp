// The grammars of strangers that the store reads (HTTP fields, addresses, hub names and answers, records) and the
// journal. The program against servers is tested in tests/store. A new case is a row.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "store/address.h"
#include "store/http_headers.h"
#include "store/hub.h"
#include "store/journal.h"
#include "store/model_store.h"
#include "store/request_head.h"
#include "store/retry.h"
#include "store/url.h"

namespace doppler::store {
namespace {

TEST(HttpHeaders, ContentRange) {
  const auto good = [](std::string_view text, uint64_t first, uint64_t last, std::optional<uint64_t> total) {
    const auto range = parse_content_range(text);
    ASSERT_TRUE(range && range->range) << text;
    EXPECT_EQ(*range->range, (ByteRange{first, last})) << text;
    EXPECT_EQ(range->total, total) << text;
  };
  good("bytes 0-99/1234", 0, 99, 1234);
  good("BYTES 5-5/*", 5, 5, std::nullopt);
  good("  bytes 0-0/1 ", 0, 0, 1);
  EXPECT_EQ(parse_content_range("bytes */77")->total, 77u);
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 0-99", "bytes 9-5/10", "bytes 0-10/10", "bytes */*", "bytes -5/10",
        "bytes 5-/10", "bytes 0-9/-10", "lines 0-9/10", "bytes 0-9/10/10", "bytes 0-18446744073709551615/*",
        "bytes 0-99999999999999999999/*", "bytes=0-9/10", "bytes 0 - 9/10", "bytes +0-9/10"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

TEST(Address, OnlyThoseOfTheInternetArePublic) {
  for (const char* ip : {"8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "100.63.0.1",
                         "223.0.0.1", "2001:4860:4860::8888", "2606:4700::1111", "3fff::1"}) {
    EXPECT_TRUE(is_public_address(ip)) << ip;
  }
  for (const char* ip : {"0.0.0.0",    "10.1.2.3",       "127.0.0.1",   "127.255.0.1",     "169.254.169.254",
                         "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1",      "100.127.255.255",
                         "198.19.0.1", "203.0.113.9",    "224.0.0.1",   "255.255.255.255", "::",
                         "::1",        "::ffff:8.8.8.8", "fc00::1",     "fd12::1",         "fe80::1",
                         "ff02::1",    "2001:db8::1",    "2001::1",     "2002:7f00:1::",   "64:ff9b::1",
                         "",           "8.8.8",          "8.8.8.8.8",   "8.8.8.256",       "localhost",
                         "2001"}) {
    EXPECT_FALSE(is_public_address(ip)) << ip;
  }
}

Result<std::string> no_texts(const std::string& path) {
  return fail(ErrorKind::kInternal, "%s was read.", path.c_str());
}

HubRepo repo_of(std::initializer_list<const char*> paths) {
  HubRepo repo{.commit = "c", .files = {}};
  for (const char* path : paths) repo.files.push_back({.path = path, .bytes = {}, .sha256 = {}});
  return repo;
}

// The files of a folder of safetensors, or the sentence.
std::string folder_files(const HubRepo& repo, std::string_view index, std::string_view modules) {
  const auto read = [&](const std::string& path) -> Result<std::string> {
    return std::string(path == "modules.json" ? modules : index);
  };
  const auto choice = choose_files(repo, {.repo = "o/m", .selector = {}, .revision = {}}, read);
  if (!choice) return choice.error().sentence();
  std::string out;
  for (const HubFile& file : choice->files) out += (out.empty() ? "" : " ") + file.path;
  return out;
}

// A fuzz target took the two dots for a way out of the folder.
TEST(Hub, AFileMayBeginWithDots) {
  const auto repo = parse_hub_repo(R"({"sha":"abc","siblings":[{"rfilename":"..Q4_K_M.gguf"}]})");
  ASSERT_TRUE(repo);
  const auto choice =
      choose_files(*repo, {.repo = "org/name", .selector = "Q4_K_M", .revision = {}}, no_texts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->entry, "..Q4_K_M.gguf");
  EXPECT_FALSE(parse_hub_repo(R"({"sha":"abc","siblings":[{"rfilename":"../Q4_K_M.gguf"}]})"));
  EXPECT_FALSE(parse_hub_repo(R"({"sha":"abc","siblings":[{"rfilename":"a/../Q4_K_M.gguf"}]})"));
}

TEST(RequestHead, TakesRequestsAndNothingElse) {
  const auto head = parse_request_head("GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\nRANGE:  bytes=0-1 \r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "GET");
  EXPECT_EQ(head->path, "/a%20b");
  EXPECT_EQ(head->field("range"), "bytes=0-1");
  EXPECT_EQ(head->field("if-range"), "");
  EXPECT_TRUE(head->keeps_alive);
  EXPECT_FALSE(head->has_body);
  EXPECT_EQ(parse_request_head("HEAD http://a.example/b HTTP/1.1\r\n\r\n")->path, "/b");
  EXPECT_EQ(parse_request_head("HEAD http://a.example HTTP/1.1\r\n\r\n")->path, "/");
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.0\r\n\r\n")->keeps_alive);
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n")->keeps_alive);
  EXPECT_TRUE(parse_request_head("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n")->has_body);
  EXPECT_TRUE(parse_request_head("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")->has_body);
  for (const char* text :
       {"", "\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n",
        "GET a HTTP/1.1\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\na b: c\r\n\r\n", "GET / HTTP/1.1\r\n folded: c\r\n\r\n", "GET / HTTP/1.1"}) {
    EXPECT_FALSE(parse_request_head(text)) << text;
  }
}

TEST(HttpHeaders, RetryAfterAndDates) {
  EXPECT_EQ(parse_retry_after(" 120 ", 0), 120u);
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111700), 77u);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784119999), 0u);
  for (const char* text : {"", "soon", "-1", "1.5", "99999999999999999999", "Sun, 99 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Noo 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_retry_after(text, 0)) << text;
  }
}

TEST(HttpHeaders, EntityTags) {
  EXPECT_EQ(strong_etag("\"abc\""), "\"abc\"");
  for (const char* text : {"", "abc", "\"\"", "W/\"abc\"", "\"a\"b\"", "\"a b\"", "\"a\r\nX: b\""}) {
    EXPECT_FALSE(strong_etag(text)) << text;
  }
  EXPECT_TRUE(etag_list_names("\"x\", W/\"abc\"", "\"abc\""));
  EXPECT_TRUE(etag_list_names("*", "\"abc\""));
  EXPECT_FALSE(etag_list_names("\"abcd\"", "\"abc\""));
}

TEST(Url, PartsAndWhatIsShown) {
  const auto url = parse_url("HTTPS://user:secret@Example.org:8443/a%20b/c.gguf?token=x#y");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin(), "https://example.org:8443");
  EXPECT_EQ(file_name_of(*url).value(), "c.gguf");
  EXPECT_EQ(shown_url("https://user:secret@example.org/a.gguf?token=x"), "https://example.org/a.gguf");
  for (const char* text :
       {"", "http://", "https:///x", "ftp://a/b", "http://a b/c", "http://a/\nb", "http://a\\b/c"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  for (const char* path :
       {"/", "/..", "/%2e%2e", "/a%2fb", "/a%5cb", "/.x", "/-x", "/a%00b", "/%zz", "/a%0ab"}) {
    EXPECT_FALSE(file_name_of({.scheme = "http", .host = "a", .path = path})) << path;
  }
}

TEST(Names, WhatTheStoreTakes) {
  EXPECT_EQ(store_name_of("my model (1)"), "my-model-1");
  EXPECT_EQ(store_name_of("../../x"), "x");
  EXPECT_EQ(store_name_of("x.part.part"), "x");
  EXPECT_EQ(store_name_of("\xff\xfe"), "");
  for (const char* name : {"", ".", "..", "-x", "a/b", "a.part", "a b", "\xc3\xa4"})
    EXPECT_FALSE(is_store_name(name)) << name;
}

TEST(Hub, Names) {
  const auto name = parse_hub_name("org/na.me-1:Q4_K_M@v1.0");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repo + " " + name->selector + " " + name->revision, "org/na.me-1 Q4_K_M v1.0");
  EXPECT_EQ(hub_name_of_page("/org/name/resolve/main/a/b.gguf")->selector, "a/b.gguf");
  for (const char* text : {"org", "org/", "/name", "../name", "org/na me", "org/name:", "org/name:../x",
                           "org/name@", "org/name:a//b", "a/b/c"}) {
    EXPECT_FALSE(parse_hub_name(text)) << text;
  }
  EXPECT_EQ(split_stem("a/m-00001-of-00012.gguf"), "a/m");
  EXPECT_EQ(split_stem("m-00001-of-012.gguf"), "");
}

TEST(Hub, QuantisationIsAWholeWord) {
  const HubRepo repo = repo_of({"m-IQ4_NL.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m.q8_0.gguf",
                                "m_q5_k_m.gguf", "m_q6_k-00001-of-00002.gguf", "m_q6_k-00002-of-00002.gguf"});
  const auto chosen = [&](const char* selector) {
    const auto choice = choose_files(repo, {.repo = "o/m", .selector = selector, .revision = {}}, no_texts);
    return choice ? choice->entry : std::string("none");
  };
  EXPECT_EQ(chosen(""), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen("q8_0"), "m.q8_0.gguf");
  EXPECT_EQ(chosen("Q4_K"), "none");
  EXPECT_EQ(chosen("q4_k_s"), "m-Q4_K_S.gguf");
  EXPECT_EQ(chosen("Q5_K_M"), "m_q5_k_m.gguf");
  EXPECT_EQ(chosen("Q5_K"), "none");
  EXPECT_EQ(chosen("Q6_K"), "m_q6_k-00001-of-00002.gguf");
}

TEST(Hub, AddressesAreNamesToo) {
  const auto meant = [](std::string_view text) {
    const auto path = path_on_hub(text);
    const auto name = path ? hub_name_of_page(*path) : std::nullopt;
    return name ? name->text() : "none";
  };
  for (const char* prefix : {"hf.co/", "huggingface.co/", "https://huggingface.co/", "HTTPS://HF.CO/",
                             "http://hf.co/", "https://www.huggingface.co/"}) {
    const std::string page = prefix + std::string("org/name");
    EXPECT_EQ(meant(page), "org/name") << prefix;
    EXPECT_EQ(meant(page + "/"), "org/name") << prefix;
    EXPECT_EQ(meant(page + ":Q4_K_M"), "org/name:Q4_K_M") << prefix;
    EXPECT_EQ(meant(page + ":Q4_K_M@v1"), "org/name:Q4_K_M@v1") << prefix;
    EXPECT_EQ(meant(page + "/blob/main/a/m%20b.gguf?show=1"), "org/name:a/m b.gguf@main") << prefix;
    EXPECT_EQ(meant(page + "/resolve/main/m.gguf?download=true"), "org/name:m.gguf@main") << prefix;
    EXPECT_EQ(meant(page + "/tree/v1"), "org/name@v1") << prefix;
  }
  for (const char* text :
       {"hf.co", "hf.co/org", "hf.company/org/name", "https://example.org/org/name", "org/name",
        "hf.co/org/name/settings", "hf.co/../name", "hf.co/org/name/blob/main/%2e%2e/x.gguf"}) {
    EXPECT_EQ(meant(text), "none") << text;
  }
}

// Mistral's repositories have the weights a second time, in one file.
TEST(Hub, OfShardsOnlyThoseThatTheIndexNames) {
  const HubRepo repo = repo_of({"config.json", "consolidated.safetensors", "model-00001-of-00002.safetensors",
                                "model-00002-of-00002.safetensors", "model.safetensors.index.json"});
  EXPECT_EQ(folder_files(repo,
                         R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                                            "b": "model-00002-of-00002.safetensors"}})",
                         ""),
            "config.json model.safetensors.index.json model-00001-of-00002.safetensors "
            "model-00002-of-00002.safetensors");
  EXPECT_EQ(folder_files(repo, R"({"weight_map": {"a": "other.safetensors"}})", ""),
            "model.safetensors.index.json of o/m names other.safetensors, which the repository lacks.");
  EXPECT_EQ(folder_files(repo_of({"config.json", "consolidated.safetensors", "model.safetensors"}), "", ""),
            "config.json model.safetensors");
  EXPECT_EQ(folder_files(repo_of({"config.json", "weights.safetensors"}), "", ""),
            "config.json weights.safetensors");
}

// BGE was pooled by mean, and EmbeddingGemma lost two matrices.
TEST(Hub, WhatModulesNameComesAlong) {
  const HubRepo repo = repo_of({"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors",
                                "2_Dense/pytorch_model.bin", "config.json", "model.safetensors",
                                "modules.json", "onnx/config.json", "onnx/model.onnx"});
  EXPECT_EQ(
      folder_files(repo, "",
                   R"([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "3_Normalize"},
                             {"path": "1_Pooling"}, {"path": "../x"}])"),
      "config.json modules.json 1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors "
      "model.safetensors");
  EXPECT_EQ(folder_files(repo, "", "{"), "modules.json is not valid JSON.");
}

TEST(Names, OfFilesInTheStoreMayHaveAFolder) {
  for (const char* name : {"config.json", "1_Pooling/config.json"})
    EXPECT_TRUE(is_safe_stored_name(name)) << name;
  for (const char* name : {"", "/", "a/", "/a", "a/b/c", "../a", "a/..", ".a/b", "a/.b", "a\\b/c"})
    EXPECT_FALSE(is_safe_stored_name(name)) << name;
}

TEST(Record, RoundTrip) {
  const Record record{.source = "s",
                      .revision = "",
                      .kind = "gguf",
                      .entry = "a.gguf",
                      .stored = "now",
                      .files = {{.file = "a.gguf", .bytes = 5, .sha256 = {1, 2}, .is_verified = true}}};
  const auto again = parse_record(to_text(record_json(record)), "x");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(to_text(record_json(*again)), to_text(record_json(record)));
}

TEST(RetriesTest, GivesUpAfterSoManyWithoutProgressAndForgivesWithIt) {
  const Failure failure{.error = Error(ErrorKind::kIo, "Lost."), .may_pass = true};
  Retries retries(2);
  EXPECT_EQ(retries.next(failure).value(), 500u);
  EXPECT_EQ(retries.next(failure).value(), 1000u);
  retries.note_progress(1 << 20);
  EXPECT_EQ(retries.next(failure).value(), 500u);
  EXPECT_TRUE(retries.next(failure));
  EXPECT_EQ(retries.next(failure).error().message(),
            "Lost. Given up after 3 tries; the arrived bytes are kept.");
  EXPECT_FALSE(Retries(2).next({.error = failure.error, .may_pass = true, .wait_seconds = 121}));
  EXPECT_EQ(Retries(2).next({.error = failure.error, .may_pass = true, .wait_seconds = 7}).value(), 7000u);
}

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "doppler_journal_test";
  const JournalKey key_{.bytes = 2 * kPieceBytes + 5, .validator = "\"a\"", .sha256 = {}};
};

TEST_F(JournalTest, KeepsWhatWasNoted) {
  {
    auto journal = Journal::open(path_, key_);
    ASSERT_TRUE(journal);
    EXPECT_EQ(journal->pieces(), 3u);
    EXPECT_EQ(journal->size(2), 5u);
    ASSERT_TRUE(journal->note(0, kPieceBytes));
    ASSERT_TRUE(journal->note(2, 3));
  }
  auto journal = Journal::open(path_, key_);
  ASSERT_TRUE(journal);
  EXPECT_FALSE(journal->changed());
  EXPECT_EQ(journal->total_done(), kPieceBytes + 3);
  EXPECT_EQ(journal->contiguous(), kPieceBytes);
  EXPECT_EQ(journalled_bytes(path_), kPieceBytes + 3);
}

TEST_F(JournalTest, OfAnotherFileIsBegunAnew) {
  const auto note = [&](const JournalKey& key) {
    auto journal = Journal::open(path_, key);
    ASSERT_TRUE(journal && journal->note(1, 7));
  };
  const std::vector<JournalKey> others = {
      {.bytes = key_.bytes - 1, .validator = key_.validator, .sha256 = {}},
      {.bytes = key_.bytes, .validator = "\"b\"", .sha256 = {}},
      {.bytes = key_.bytes, .validator = "", .sha256 = {}},
      {.bytes = key_.bytes, .validator = key_.validator, .sha256 = Sha256{1}}};
  for (const JournalKey& other : others) {
    note(key_);
    const auto journal = Journal::open(path_, other);
    ASSERT_TRUE(journal);
    EXPECT_TRUE(journal->changed());
    EXPECT_EQ(journal->total_done(), 0u);
  }
}

TEST_F(JournalTest, EveryDamagedByteOfTheTableOrAShorterFileGivesNoWrongCount) {
  {
    auto journal = Journal::open(path_, key_);
    ASSERT_TRUE(journal && journal->note(0, 100));
  }
  const auto size = std::filesystem::file_size(path_);
  for (uintmax_t cut = 0; cut < size; cut += 97) {
    const std::string copy = path_ + ".cut";
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(copy, cut);
    EXPECT_FALSE(journalled_bytes(copy)) << cut;
    std::filesystem::remove(copy);
  }
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(kJournalHead + 7).put('\x7f');
  EXPECT_FALSE(journalled_bytes(path_));
}

}  // namespace
}  // namespace doppler::store
