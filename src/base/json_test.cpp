// The value, its text and its parser: what json.h promises.
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/json_events.h"

namespace doppler {
namespace {

std::string again(std::string_view text, int indent = -1) {
  const auto json = parse_json(text, "x");
  return json ? to_text(*json, indent) : json.error().message();
}

TEST(Json, TextOfNumbersIsTheShortestThatReadsBack) {
  EXPECT_EQ(again("[0.1, 1e5, 100000000000000.0, 1e15, 1e-4, 1e-5, -1.5e-300, 1.70405e+209]"),
            "[0.1,100000.0,100000000000000.0,1e+15,0.0001,1e-05,-1.5e-300,1.70405e+209]");
  EXPECT_EQ(again("[18446744073709551615, -9223372036854775808, 18446744073709551616, -0.0]"),
            "[18446744073709551615,-9223372036854775808,1.8446744073709552e+19,-0.0]");
  EXPECT_EQ(to_text(Json(0.1f)), "0.10000000149011612");
  EXPECT_EQ(to_text(Json(1.0 / 0.0)), "null") << "JSON has no infinity";
}

TEST(Json, TextOfBytesThatAreNoUtf8HasReplacementCharacters) {
  EXPECT_EQ(to_text(Json("\"\\\n\x01\x7f\xc3\xa9")), "\"\\\"\\\\\\n\\u0001\x7f\xc3\xa9\"");
  EXPECT_EQ(to_text(Json("a\xff\xe2\x82z")), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
  EXPECT_EQ(to_text(Json("\xed\xa0\x80")), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"") << "a surrogate";
  EXPECT_FALSE(parse_json("\"\xff\"", "x"));
}

TEST(Json, Indentation) {
  EXPECT_EQ(again(R"({"a":[1,{}],"b":{"c":[]}})", 2),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}");
}

TEST(Json, OfMembersWithOneKeyTheLastStaysAtThePlaceOfTheFirst) {
  EXPECT_EQ(again(R"({"a":1,"b":2,"a":3,"c":4,"b":5,"a":6})"), R"({"a":6,"b":5,"c":4})");
}

TEST(Json, BracesMakeObjectsOfPairsAndArraysOfTheRest) {
  EXPECT_EQ(to_text(Json{{"a", 1}, {"b", {1, 2.5, nullptr, true}}}), R"({"a":1,"b":[1,2.5,null,true]})");
  EXPECT_EQ(to_text(Json{{"a", 1}, {2, "b"}}), R"([["a",1],[2,"b"]])");
  EXPECT_EQ(to_text(Json(std::vector<int32_t>{1, 2})), "[1,2]");
  EXPECT_EQ(to_text(Json(std::map<std::string, double>{{"x", 0.5}})), R"({"x":0.5})");
}

TEST(Json, ItemsBetweenBracesAreMovedNotCopied) {
  Json long_text(std::string(100, 'x'));
  const char* at = long_text.text().data();
  const Json json{{"a", {{"b", std::move(long_text)}}}};
  EXPECT_EQ(json["a"]["b"].text().data(), at);
}

TEST(Json, NumbersAreEqualByValue) {
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_FALSE(Json(-1) == Json(UINT64_MAX)) << "the same bits";
  EXPECT_FALSE(Json(1) == Json(true));
}

TEST(Json, MembersAreAddedErasedAndUpdated) {
  Json json;
  json["a"]["b"].push_back(1);
  json.update({{"c", 2}, {"a", 3}});
  EXPECT_EQ(to_text(json), R"({"a":3,"c":2})");
  json.erase("a");
  EXPECT_EQ(to_text(json), R"({"c":2})");
  EXPECT_EQ(find(json, "a"), nullptr);
  EXPECT_EQ(find(Json("text"), "a"), nullptr);
  const Json copy = json;
  json["c"] = Json::array({copy});
  EXPECT_EQ(to_text(json), R"({"c":[{"c":2}]})");
}

TEST(Json, DepthIsLimitedForTreesAndFreeForEvents) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_EQ(again(deep), "x is nested deeper than 64 levels.");
  EXPECT_EQ(again(deep.substr(1, 128)), deep.substr(1, 128));

  struct Counter final : JsonEvents {
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool integer(int64_t) override { return true; }
    bool natural(uint64_t) override { return true; }
    bool real(double) override { return true; }
    bool string(std::string&) override { return true; }
    bool start_object() override { return true; }
    bool key(std::string&) override { return true; }
    bool end_object() override { return true; }
    bool start_array() override { return ++arrays < 100'000; }
    bool end_array() override { return true; }
    bool parse_error(size_t byte) override {
      error_at = byte;
      return false;
    }
    int arrays = 0;
    size_t error_at = 0;
  } events, others;
  EXPECT_FALSE(parse_json_events(std::string(1'000'000, '['), events));
  EXPECT_EQ(events.arrays, 100'000);
  EXPECT_FALSE(parse_json_events("[1, x]", others));
  EXPECT_EQ(others.error_at, 5u);
}

}  // namespace
}  // namespace doppler
