// Requests and forms from bytes, and who may ask: a table each; files that are kept. The server
// as a whole: tests/server.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "server/files/file_store.h"
#include "server/gate.h"
#include "server/http_parser.h"
#include "server/multipart.h"
#include "server/remote_pictures.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

// "METHOD path?query body" of each request, or the status that refuses them.
std::string read(std::string_view bytes, size_t piece) {
  HttpParser parser({.head_bytes = 200, .body_bytes = 20, .fields = 4});
  std::string out;
  while (!bytes.empty()) {
    const size_t taken = parser.push(bytes.substr(0, piece));
    bytes.remove_prefix(taken);
    if (parser.state() == HttpParser::State::kRefused) return out + std::to_string(parser.refusal().status);
    if (parser.state() != HttpParser::State::kDone) continue;
    const HttpRequest request = parser.take();
    out += request.method + " " + request.path + "?" + request.query + " " + request.body +
           (request.keeps_alive ? ";" : ".");
  }
  return out;
}

TEST(HttpParser, RequestsAndRefusals) {
  const std::string long_line = "GET / HTTP/1.1\r\nX: " + std::string(300, 'y');
  const char* const cases[][2] = {
      {"GET /a%20b?c=%20 HTTP/1.1\r\n\r\n", "GET /a b?c=%20 ;"},
      {"\r\nGET / HTTP/1.0\r\n\r\n", "GET /? ."},
      {"GET http://host:80/a HTTP/1.1\r\nConnection: x, Close\r\n\r\n", "GET /a? ."},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n", "POST /a? abc;GET /b? ;"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\nT: x\r\n\r\n",
       "POST /a? abc;"},
      {"POST /a HTTP/1.1\r\nContent-Length: 21\r\n\r\n", "413"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n", "413"},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
      {"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", "400"},
      {"POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST /a HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", "400"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "400"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
      {"POST /a HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n", "415"},
      {"GET /%00 HTTP/1.1\r\n\r\n", "400"},
      {"GET /%4 HTTP/1.1\r\n\r\n", "400"},
      {"GET a HTTP/1.1\r\n\r\n", "400"},
      {"GET  / HTTP/1.1\r\n\r\n", "505"},
      {"GET / HTTP/2\r\n\r\n", "505"},
      {"GET / HTTP/1.1\r\n X: folded\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nX : y\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nX: a\nb\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\n\r\n", "431"},
      {long_line.c_str(), "431"},
  };
  for (const auto& [bytes, expected] : cases) {
    const std::string_view text(bytes);
    for (size_t piece = 1; piece <= text.size(); ++piece)
      EXPECT_EQ(read(text, piece), expected) << text << piece;
  }
}

// "name/filename=content;" of each part, or "refused".
std::string form(std::string_view content_type, std::string_view body) {
  const auto parts = read_form(content_type, body);
  if (!parts) return "refused";
  std::string out;
  for (const FormPart& part : *parts)
    out += part.name + "/" + part.filename + "=" + std::string(part.content) + ";";
  return out;
}

TEST(Multipart, PartsAndRefusals) {
  constexpr const char* kType = "Multipart/Form-Data; x=y; boundary=\"B\"";
  constexpr const char* kName = "Content-Disposition: form-data; name=";
  const auto part = [&](const std::string& rest) { return "\r\n" + (kName + rest); };
  const std::pair<std::string, const char*> cases[] = {
      {"--B" + part("a\r\n\r\n1\r\n--B--"), "a/=1;"},
      {"before\r\n--B" + part("a\r\n\r\n\r\n--B ") +
           part("\"f\"; filename=\"x\\\"y\"\r\nX: y\r\n\r\nx--B\r\n\r\n--B--\r\n"),
       "a/=;f/x\"y=x--B\r\n;"},
      {"--B--", ""},
      {"--B", "refused"},
      {"--B" + part("a\r\n\r\n1"), "refused"},
      {"--B" + part("a\r\n--B--"), "refused"},
      {"--B\r\n\r\n1\r\n--B--", "refused"},
      {"--B\r\nX: name=a\r\n\r\n1\r\n--B--", "refused"},
      {"--B" + part("\"a\r\n\r\n1\r\n--B--"), "refused"},
      {"--Bx" + part("a\r\n\r\n1\r\n--B--"), "refused"},
      {"--B\r\nContent-Transfer-Encoding: base64" + part("a\r\n\r\n1\r\n--B--"), "refused"},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(form(kType, body), expected) << body;
  EXPECT_EQ(form("multipart/form-data", "--B--"), "refused");
  EXPECT_EQ(form("application/json", "{}"), "refused");
  EXPECT_EQ(query_value("a=1&b=x%20y&c", "b"), "x y");
  EXPECT_EQ(query_value("a=1&b=x%20y&c", "c"), "");
  EXPECT_EQ(query_value("a=1", "d"), std::nullopt);
}

TEST(RemotePictures, AddressesBecomeBytesWherePicturesAre) {
  std::vector<std::string> asked;
  const FetchPicture fetch = [&](const std::string& url) -> Result<std::string> {
    asked.push_back(url);
    if (url.ends_with("gone")) return fail(ErrorKind::kIo, "It is gone.");
    return std::string("abc");  // "YWJj"
  };
  const auto with = [&](const char* body) { return with_fetched_pictures(body, fetch); };
  EXPECT_EQ(
      with(R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a/b"}}]}]})").value(),
      R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image;base64,YWJj"}}]}]})");
  EXPECT_EQ(with(R"({"input":[{"content":[{"image_url":"HTTP://a/c"}]}]})").value(),
            R"({"input":[{"content":[{"image_url":"data:image;base64,YWJj"}]}]})");
  EXPECT_EQ(with(R"({"content":[{"source":{"type":"url","url":"http://a/d"}}]})").value(),
            R"({"content":[{"source":{"type":"base64","media_type":"image","data":"YWJj"}}]})");
  EXPECT_EQ(asked, (std::vector<std::string>{"https://a/b", "HTTP://a/c", "http://a/d"}));
  asked.clear();
  for (const char* body :
       {R"({ "url": "http://a", "content": "http://a", "source": "http://a", "image_url": 1 })",
        R"(["http://a"])", R"({"image_url": "file:///a"})", R"(no JSON "http://a")"}) {
    EXPECT_EQ(with(body).value(), body);
  }
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(with(R"({"image_url":"http://a/gone"})").error().sentence(),
            "A picture cannot be fetched: It is gone.");
  std::string many = R"({"messages":[)";
  for (size_t i = 0; i <= kMostRemotePictures; ++i)
    many += std::string(i ? "," : "") + R"({"image_url":"http://a"})";
  EXPECT_NE(with((many + "]}").c_str()).error().sentence().find("more than 16"), std::string::npos);
  const FetchPicture large = [](const std::string&) {
    return Result<std::string>(std::string(33 << 20, 'a'));
  };
  const char* const two = R"({"messages":[{"image_url":"http://a"},{"image_url":"http://b"}]})";
  EXPECT_EQ(with_fetched_pictures(two, large).error().sentence(),
            "The pictures that the request names have more than 64.0 MiB.");
}

TEST(FileStore, KeepsFilesWithinItsBounds) {
  const std::string path = testing::TempDir() + "doppler_file_store";
  std::filesystem::remove_all(path);
  std::string id;
  {
    auto folder = PrivateFolder::open(path);
    ASSERT_TRUE(folder.has_value());
    EXPECT_FALSE(PrivateFolder::open(path).has_value());  // one server at a time
    const auto store = FileStore::open(std::move(*folder), 10);
    const auto put = store->put("1234567", "a.jsonl", "batch");
    ASSERT_TRUE(put.has_value());
    id = put->id;
    EXPECT_EQ(store->put("1234", "b", "batch").error().kind(), ErrorKind::kOutOfMemory);
    EXPECT_TRUE(store->put("123", "b", "batch").has_value());
  }
  auto folder = PrivateFolder::open(path);
  ASSERT_TRUE(folder.has_value());
  ASSERT_TRUE((*folder)->write("file-torn", "x").has_value());
  auto store = FileStore::open(std::move(*folder), 10);
  EXPECT_EQ(store->list().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(path + "/file-torn"));
  ASSERT_TRUE(store->get(id).has_value());
  EXPECT_EQ(store->get(id)->filename, "a.jsonl");
  EXPECT_FALSE(store->get("../" + id).has_value());
  EXPECT_TRUE(store->remove(id));
  EXPECT_FALSE(std::filesystem::exists(path + "/" + id));
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_FALSE(PrivateFolder::open(path).has_value());  // others could read it
  store.reset();                                        // Windows removes no file that is open
  std::filesystem::remove_all(path);
}

TEST(Gate, KeysPagesAndNames) {
  const auto asks = [](const GateOptions& options, HttpFields fields) {
    const HttpRequest request{.method = "POST", .path = "/", .fields = std::move(fields)};
    const auto refusal = refusal_of(options, request, /*needs_key=*/true);
    return refusal ? refusal->status : 200;
  };
  const GateOptions open, key{.api_keys = {"a", "secret"}}, page{.origin = "https://example.org"};
  EXPECT_EQ(asks(open, {}), 200);
  EXPECT_EQ(asks(open, {{"host", "localhost:8080"}}), 200);
  EXPECT_EQ(asks(open, {{"host", "[::1]:8080"}}), 200);
  EXPECT_EQ(asks(open, {{"host", "LocalHost:8080"}}), 200);
  EXPECT_EQ(asks(open, {{"host", "localhost:80"}, {"origin", "HTTP://LOCALHOST:80"}}), 200);
  EXPECT_EQ(asks(page, {{"origin", "https://Example.ORG"}}), 200);
  EXPECT_EQ(asks(open, {{"host", "evil.example"}}), 403);
  EXPECT_EQ(asks(open, {{"host", "localhost:80"}, {"origin", "http://localhost:80"}}), 200);
  EXPECT_EQ(asks(open, {{"origin", "https://example.org"}}), 403);
  EXPECT_EQ(asks(page, {{"origin", "https://example.org"}}), 200);
  EXPECT_EQ(asks(page, {{"origin", "https://example.org.evil"}}), 403);
  EXPECT_EQ(asks(key, {}), 401);
  EXPECT_EQ(asks(key, {{"x-api-key", "secre"}}), 401);
  EXPECT_EQ(asks(key, {{"x-api-key", "secret"}, {"host", "anywhere"}}), 200);
  EXPECT_EQ(asks(key, {{"authorization", "bearer secret"}}), 200);
  EXPECT_EQ(asks(key, {{"authorization", "Basic secret"}}), 401);
  EXPECT_TRUE(check_gate({.is_loopback = false}, "0.0.0.0").has_value() == false);
  EXPECT_TRUE(check_gate({.api_keys = {"a"}, .is_loopback = false}, "0.0.0.0").has_value());
}

TEST(Routes, PathsMethodsAndAliases) {
  std::string allowed;
  const auto finds = [&](std::string_view method, std::string_view path) {
    const Route* route = find_route(method, path, &allowed);
    return route ? route->handle : nullptr;
  };
  EXPECT_EQ(finds("POST", "/chat/completions"), answer_chat);
  EXPECT_EQ(finds("POST", "/completions"), answer_completions);
  EXPECT_EQ(finds("POST", "/embeddings"), answer_embeddings);
  EXPECT_EQ(finds("POST", "/rerank"), answer_rerank);
  EXPECT_EQ(finds("GET", "/models"), answer_models);
  EXPECT_EQ(finds("GET", "/models/a/b"), answer_model);
  EXPECT_EQ(finds("HEAD", "/"), answer_ollama_running);
  EXPECT_EQ(finds("POST", "/v1/responses/input_tokens"), answer_input_tokens);
  EXPECT_EQ(finds("POST", "/v1/responses/x/cancel"), answer_cancel_response);
  EXPECT_EQ(finds("GET", "/nothing"), nullptr);
  EXPECT_EQ(allowed, "");
  EXPECT_EQ(finds("PUT", "/v1/files"), nullptr);
  EXPECT_EQ(allowed, "POST, GET, HEAD");
  EXPECT_EQ(finds("PUT", "/v1/responses/x"), nullptr);
  EXPECT_EQ(allowed, "GET, HEAD, DELETE, POST");
}

}  // namespace
}  // namespace doppler::server
