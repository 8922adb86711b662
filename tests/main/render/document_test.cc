// A YAML parser that is not ours reads every written document back unchanged.
#include "main/render/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

nlohmann::json read_back(const Json& value) {
  const std::string text = to_yaml_text(value);
  const std::vector<nlohmann::json> documents = parse_yaml(text);
  EXPECT_EQ(documents.size(), 1U) << text;
  return documents.at(0);
}

TEST(YamlText, IsReadBackAsItWas) {
  const Json value = Json::parse(
      R"({"a": [1, -2, 1.5, true, false, null, "x"], "b": {"c": {}, "d": [], "e": {"f": [[1, 2], [{"g": "h"}]]}},
          "i": [{"j": {"k": 1}, "l": 2}, {"m": [3]}]})");
  EXPECT_EQ(read_back(value), nlohmann::json(value));
}

TEST(YamlText, KeepsTextThatLooksLikeSomethingElse) {
  for (const char* text :
       {"",        "yes",         "No",         "on",  "OFF",  "y",    "null", "~",
        "true",    "False",       "1",          "1.5", "-1",   "0x10", "1e3",  "12:30",
        "2222:22", ".5",          "2026-11-21", "-",   "- a",  "--",   "---",  "--- a",
        "a: b",    "a:",          "a #b",       "#a",  "&a",   "*a",   "!a",   "|",
        ">",       "'a'",         "\"a\"",      "%a",  "@a",   "`a`",  "{a}",  "[a]",
        "?",       ": ",          " a",         "a ",  "a\nb", "a\tb", "\\",   "\x01",
        "\x7f",    "caf\xc3\xa9", "<<",         "=",   "a, b", "$(A)", "${A}"}) {
    Json value;
    value["k"] = text;
    EXPECT_EQ(read_back(value)["k"], nlohmann::json(text)) << to_yaml_text(value);
    Json list;
    list["k"] = Json::array({text, text});
    EXPECT_EQ(read_back(list)["k"][1], nlohmann::json(text)) << to_yaml_text(list);
    if (*text != '#') {  // a key that begins with it is a comment
      Json key;
      key[text] = 1;
      EXPECT_EQ(read_back(key), nlohmann::json(key)) << to_yaml_text(key);
    }
  }
}

TEST(YamlText, LeavesPlainWordsAsTheyAre) {
  Json value;
  value["image"] = "registry.example/disttf:1";
  value["args"] = Json::array({"--ps_hosts=a-0.a:2222,a-1.a:2222", "worker", "/data"});
  EXPECT_EQ(to_yaml_text(value),
            "image: registry.example/disttf:1\n"
            "args:\n"
            "  - --ps_hosts=a-0.a:2222,a-1.a:2222\n"
            "  - worker\n"
            "  - /data\n");
}

TEST(YamlText, WritesCommentsAboveTheirKeys) {
  Json value;
  value["#a"] = "one\ntwo";
  value["a"] = 1;
  value["b"] = Json::array();
  Json entry;
  entry["#c"] = "three";
  entry["c"] = 2;
  entry["d"] = 3;
  value["b"].push_back(entry);
  EXPECT_EQ(to_yaml_text(value), "# one\n# two\na: 1\nb:\n  - # three\n    c: 2\n    d: 3\n");
  EXPECT_EQ(read_back(value), nlohmann::json::parse(R"({"a": 1, "b": [{"c": 2, "d": 3}]})"));
}

TEST(JsonText, HasNoComments) {
  Json value;
  value["#a"] = "one";
  value["a"] = 1;
  value["b"] = Json::array({value});
  EXPECT_EQ(nlohmann::json::parse(to_json_text(value)),
            nlohmann::json::parse(R"({"a": 1, "b": [{"a": 1}]})"));
}

}  // namespace
}  // namespace disttf::render
