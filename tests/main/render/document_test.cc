// A YAML parser that is not ours reads every written document back unchanged.
#include "main/render/document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "main/render/dcos_options.h"
#include "tests/main/render/round_trip.h"
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

// Validates TFJobs and pods against the schema of Kubeflow's custom resource, which contains
// Kubernetes' schema of a pod; JobSets and TrainJobs against their own schemas, without the pods;
// and merged DC/OS options against the package's schema.

using nlohmann::json;

const std::string kAllFlags =
    " --name m --namespace ml --ps 2 --workers 3 --chief --cpus 1.5 --ps_cpus 1 --memory 512 "
    "--gpus 1 --volumes /srv:/data:ro,runs:/runs --placement disk=ssd --train_dir /runs/1 "
    "--secret mnist-secret";
// The location of a pod's template in the schema of a TFJob.
const std::string kPod =
    "/properties/spec/properties/tfReplicaSpecs/additionalProperties/properties/template";

class Schemas : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_schema_validator()) {
      GTEST_SKIP() << kNoValidator;
    }
  }
};

TEST_F(Schemas, TheyRefuseWhatIsWrong) {
  json tfjob = parse_yaml(rendered("tfjob")).at(0);
  tfjob["spec"]["runPolicy"]["backofLimit"] = 1;
  EXPECT_FALSE(fits_schema(tfjob, "tfjob.json"));
  tfjob = parse_yaml(rendered("tfjob")).at(0);
  tfjob["spec"]["tfReplicaSpecs"]["PS"]["replicas"] = "two";
  EXPECT_FALSE(fits_schema(tfjob, "tfjob.json"));
  EXPECT_FALSE(fits_schema(json::parse(R"({"service": {"name": 1}})"), "dcos_options.json"));
}

TEST_F(Schemas, ATfjobFits) {
  for (const std::string& line : {std::string(), kAllFlags + " --evaluator"}) {
    EXPECT_TRUE(fits_schema(parse_yaml(rendered("tfjob " + line)).at(0), "tfjob.json"));
  }
}

TEST_F(Schemas, ThePodsOfAJobAndOfAStatefulSetFit) {
  for (const char* target : {"kubernetes ", "statefulset "}) {
    for (const std::string& line : {std::string(), kAllFlags + " --serve 2"}) {
      for (const json& object : parse_yaml(rendered(target + line))) {
        if (object["kind"] != "Service") {
          EXPECT_TRUE(fits_schema(object["spec"]["template"], "tfjob.json", kPod));
        }
      }
    }
  }
}

TEST_F(Schemas, AJobSetFitsAndSoDoItsPods) {
  for (const std::string& line : {std::string(), kAllFlags + " --evaluator"}) {
    json jobset = parse_yaml(rendered("jobset " + line)).at(0);
    EXPECT_TRUE(fits_schema(jobset, "jobset.json"));
    for (json& job : jobset["spec"]["replicatedJobs"]) {
      EXPECT_TRUE(fits_schema(job["template"]["spec"]["template"], "tfjob.json", kPod));
      job["template"]["spec"]["ttlSecondsAfterFinish"] = 1;
      EXPECT_FALSE(fits_schema(jobset, "jobset.json"));
    }
  }
}

TEST_F(Schemas, ATrainJobFitsAndSoDoesItsRuntime) {
  const auto all = parse_yaml(rendered("trainjob " + kAllFlags));
  EXPECT_TRUE(fits_schema(all.at(0), "trainjob.json", "/runtime"));
  EXPECT_TRUE(
      fits_schema(all.at(0)["spec"]["template"]["spec"], "jobset.json", "/properties/spec"));
  EXPECT_TRUE(fits_schema(all.at(1), "trainjob.json", "/job"));
}

TEST_F(Schemas, WhatServesBesideATfjobFits) {
  const json deployment = parse_yaml(rendered("tfjob " + kAllFlags + " --serve 2")).back();
  EXPECT_TRUE(fits_schema(deployment["spec"]["template"], "tfjob.json", kPod));
}

TEST_F(Schemas, ThePredictorOfAnInferenceServiceIsAPod) {
  json predictor = parse_yaml(rendered("kserve " + kAllFlags)).at(0)["spec"]["predictor"];
  for (const char* own : {"minReplicas", "maxReplicas"}) {  // fields of KServe alone
    EXPECT_EQ(predictor.erase(own), 1U);
  }
  EXPECT_TRUE(fits_schema(predictor, "tfjob.json", kPod + "/properties/spec"));
}

TEST_F(Schemas, MergedDcosOptionsFit) {
  for (const char* text :
       {"{}", R"({"service": {"name": "m", "job_context": "{\"batch_size\": 50}"},
                  "worker": {"count": 5, "cpus": 2}, "gpu_worker": {"count": 1}})"}) {
    EXPECT_TRUE(fits_schema(merge_dcos_options(text), "dcos_options.json"));
  }
}

// Compares our table of the options row by row: the defaults, and the rejected types.
TEST_F(Schemas, EveryDefaultIsThatOfThePackage) {
  std::ifstream file(DISTTF_SOURCE_DIR "/tests/main/render/schemas/dcos_options.json");
  const json schema = json::parse(file);
  json defaults = json::object();
  const std::function<void(const json&, const std::string&)> walk = [&](const json& part,
                                                                        const std::string& path) {
    for (const auto& [name, entry] : part["properties"].items()) {
      if (entry.contains("properties")) {
        walk(entry, path + "/" + name);
      } else if (entry.contains("default")) {
        defaults[json::json_pointer(path + "/" + name)] = entry["default"];
      }
    }
  };
  walk(schema, "");
  EXPECT_EQ(merge_dcos_options("{}"), defaults);
}

}  // namespace
}  // namespace disttf::render
