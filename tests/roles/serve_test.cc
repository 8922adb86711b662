// What a served model is asked over HTTP, and how it is answered: routes, both APIs' bodies, and
// who is computed with whom.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "roles/serve/core/api_route.h"
#include "roles/serve/core/batch_queue.h"
#include "roles/serve/core/fast_json.h"
#include "roles/serve/core/inference_api.h"
#include "roles/serve/core/question.h"
#include "roles/serve/core/rest_api.h"

namespace disttf::roles {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

// Grey images of 2x3, three classes.
TrainedModel image_model() {
  TrainedModel model;
  model.config.model.input = {.height = 2, .width = 3};
  model.config.model.classes = 3;
  model.config.examples.classes = {"near", "\"far\"", "out"};
  return model;
}

TrainedModel table_model() {
  TrainedModel model;
  model.config.model.numbers = true;
  model.config.model.input = {.height = 1, .width = 1, .channels = 2};
  model.config.model.classes = 3;
  model.config.examples.columns = {"x", "y"};
  return model;
}

TrainedModel number_model() {
  TrainedModel model = table_model();
  model.config.model.classes = 1;
  model.config.model.loss = math::LossKind::kMeanSquaredError;
  return model;
}

// The status and the sentence; 0 where nothing is wrong.
std::pair<int, std::string> refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const ApiError& error) {
    return {error.status(), error.what()};
  }
  return {0, ""};
}

Question rest(std::string_view body, const TrainedModel& model = image_model(),
              ApiCall call = ApiCall::kPredict) {
  Question question;
  question.clear(call, model);
  read_rest_question(body, model, question);
  return question;
}

Question infer(std::string_view body, const TrainedModel& model = image_model(),
               std::optional<std::size_t> json_bytes = std::nullopt) {
  Question question;
  question.clear(ApiCall::kInfer, model);
  read_infer_question(body, json_bytes, model, question);
  return question;
}

std::vector<int> pixels_of(const Question& question) {
  EXPECT_TRUE(question.rows.are_bytes());
  return {question.rows.pixels().begin(), question.rows.pixels().end()};
}

std::vector<float> numbers_of(const Question& question) {
  EXPECT_FALSE(question.rows.are_bytes());
  return {question.rows.numbers().begin(), question.rows.numbers().end()};
}

TEST(ServeJson, NumbersAreTheNearestFloat32) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    std::string text;
    append_number(text, value);
    const std::string array = "[" + text + "]";
    JsonReader reader(array);
    ASSERT_TRUE(reader.enter_array());
    const float back = reader.number();
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back), std::bit_cast<std::uint32_t>(value)) << text;
    ASSERT_EQ(json::parse(array)[0].get<float>(), value);
  }
  const auto read = [](std::string_view text) { return JsonReader(text).number(); };
  EXPECT_EQ(read("16777217"), 16777216.0F);
  EXPECT_EQ(read("-0.5e1 "), -5.0F);
  EXPECT_EQ(read("1e-300"), 0.0F);
  EXPECT_EQ(read("1e-45"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(read("7]"), 7.0F);
}

// Labels may have any characters, and two of them may differ in a single one.
TEST(ServeJson, StringsAreReadBackAsTheyWere) {
  const std::string value = "a\tb\nc \"d\\ \x1F\x7F\xC2\x85 f\xC3\xBCr";
  std::string text;
  append_string(text, value);
  EXPECT_EQ(text.find_first_of("\n\t"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text).get<std::string>(), value);
  text.clear();
  append_string(text, "f\xFCr");
  EXPECT_EQ(text, "\"f?r\"");
}

TEST(ServeJson, WhatIsNoNumberOfJsonIsRefused) {
  for (const char* text : {"", "-", "01", "1.", ".5", "+1", "NaN", "Infinity", "-Infinity", "nan",
                           "inf", "1e", "1e999", "-1e39", "\"1\"", "true", "01]"}) {
    EXPECT_EQ(refusal_of([text] { static_cast<void>(JsonReader(text).number()); }).first, 400)
        << text;
  }
}

TEST(ServeJson, StringsAreDecoded) {
  JsonReader reader(R"({"a\u00e9\ud83d\ude00\n\"": [null, true, {"b": []}], "c": "\\"})");
  ASSERT_TRUE(reader.enter_object());
  EXPECT_EQ(reader.key(), "a\u00e9\U0001F600\n\"");
  reader.skip();
  ASSERT_TRUE(reader.next_member());
  EXPECT_EQ(reader.key(), "c");
  EXPECT_EQ(reader.string(), "\\");
  EXPECT_FALSE(reader.next_member());
  reader.end();
}

TEST(ServeJson, DepthIsBounded) {
  const std::string deep(100'000, '[');
  const auto refusal = refusal_of([&deep] { JsonReader(deep).skip(); });
  EXPECT_EQ(refusal.first, 400);
  EXPECT_THAT(refusal.second, HasSubstr("deeper than 32"));
  EXPECT_EQ(refusal_of([&deep] { rest("{\"instances\":" + deep); }).first, 400);
}

TEST(ServeRoutes, AreThoseOfBothApis) {
  struct Case {
    const char* method;
    const char* path;
    ApiCall call;
  };
  for (const Case& each :
       {Case{"GET", "/v1/models/m", ApiCall::kStatus},
        Case{"GET", "/v1/models/m/versions/7", ApiCall::kStatus},
        Case{"HEAD", "/v1/models/m/metadata", ApiCall::kMetadata},
        Case{"POST", "/v1/models/m:predict", ApiCall::kPredict},
        Case{"POST", "/v1/models/m/versions/7:classify", ApiCall::kClassify},
        Case{"POST", "/v1/models/m/labels/latest:regress", ApiCall::kRegress},
        Case{"GET", "/v2", ApiCall::kServer}, Case{"GET", "/v2/health/live", ApiCall::kLive},
        Case{"GET", "/v2/health/ready", ApiCall::kReady},
        Case{"GET", "/v2/models/m", ApiCall::kModel},
        Case{"GET", "/v2/models/m/versions/7/ready", ApiCall::kModelReady},
        Case{"POST", "/v2/models/m/infer", ApiCall::kInfer}}) {
    const auto route = api_route(each.method, each.path);
    ASSERT_TRUE(route) << each.path;
    EXPECT_EQ(route->call, each.call) << each.path;
  }
  const auto route = api_route("POST", "/v1/models/m/versions/00000123:predict");
  EXPECT_EQ(route->name, "m");
  EXPECT_EQ(route->version, 123U);
  EXPECT_EQ(api_route("POST", "/v1/models/m/labels/latest:predict")->label, "latest");
  EXPECT_FALSE(api_route("GET", "/metrics"));
}

TEST(ServeRoutes, OthersAreRefusedWithACode) {
  const auto status = [](const char* method, const char* path) {
    return refusal_of([=] { static_cast<void>(api_route(method, path)); }).first;
  };
  EXPECT_EQ(status("GET", "/v1/models/m:predict"), 405);
  EXPECT_EQ(status("POST", "/v2/models/m"), 405);
  EXPECT_EQ(status("POST", "/v1/models/m:dance"), 404);
  EXPECT_EQ(status("POST", "/v1/models/"), 404);
  EXPECT_EQ(status("GET", "/v1/models"), 404);
  EXPECT_EQ(status("GET", "/v2/models"), 404);
  EXPECT_EQ(status("GET", "/v2/models/m/labels/latest"), 404);
  EXPECT_EQ(status("POST", "/v1/models/m/versions/x:predict"), 400);
  EXPECT_EQ(status("POST", "/v1/models/m/versions/99999999999999999999:predict"), 404);
}

TEST(ServeRest, RowsAreTakenInEveryShapeOfAnImage) {
  for (const char* body : {R"({"instances": [[0,1,2,3,4,255],[6,7,8,9,10,11]]})",
                           R"({"instances": [[[0,1,2],[3,4,255]],[[6,7,8],[9,10,11]]]})",
                           R"({"instances": [[[[0],[1],[2]],[[3],[4],[255]]],)"
                           R"([[[6],[7],[8]],[[9],[10],[11]]]]})",
                           R"({"inputs": [[0,1,2,3,4,255],[6,7,8,9,10,11]]})",
                           R"({"inputs": {"inputs": [[0,1,2,3,4,255],[6,7,8,9,10,11]]}})",
                           R"({"signature_name": "serving_default", "other": {"a": [1]}, )"
                           R"("instances": [{"inputs": [0,1,2,3,4,255]},)"
                           R"({"inputs": [[6,7,8],[9,10,11]]}]})"}) {
    const Question question = rest(body);
    EXPECT_EQ(question.count, 2U) << body;
    EXPECT_THAT(pixels_of(question), ElementsAre(0, 1, 2, 3, 4, 255, 6, 7, 8, 9, 10, 11));
  }
}

TEST(ServeRest, AValueThatIsNoByteMakesNumbersOfAll) {
  const Question question = rest(R"({"instances": [[0,1,2.5,3,4,256]]})");
  EXPECT_THAT(numbers_of(question), ElementsAre(0, 1, 2.5, 3, 4, 256));
}

TEST(ServeRest, NumbersFrom0To1AreWarnedOfOrScaledAsTheFlagSays) {
  const auto settled = [](const std::string& rows, InputRange range) {
    Question question = rest(R"({"instances":[)" + rows + "]}");
    settle_range(range, image_model(), question);
    return question;
  };
  const std::string unit = "[0,0.2,0.4,0.6,0.8,1]";
  EXPECT_THAT(settled(unit, InputRange::kByte).warning, HasSubstr("all values are from 0 to 1"));
  for (const InputRange range : {InputRange::kUnit, InputRange::kAuto}) {
    const Question question = settled(unit, range);
    EXPECT_EQ(question.warning, "");
    EXPECT_THAT(numbers_of(question), ElementsAre(0, 51, 102, 153, 204, 255));
  }
  EXPECT_THAT(settled("[0,1,0,1,0,1]", InputRange::kByte).warning, HasSubstr("from 0 to 1"));
  // Black, and what has any other value, is what it is.
  for (const char* rows : {"[0,0,0,0,0,0]", "[0,0,0.5,0,0,2]", "[0,0,0,0,0,7]"}) {
    for (const InputRange range : {InputRange::kByte, InputRange::kAuto}) {
      EXPECT_EQ(settled(rows, range).warning, "") << rows;
    }
  }
  EXPECT_THAT(settled("[-0.4,0,0,0,0,2.8]", InputRange::kByte).warning, HasSubstr("below 0"));
  EXPECT_THAT(settled("[0,0,0,0,0,9]", InputRange::kUnit).warning, HasSubstr("above 1"));
  // Of tables nothing is known.
  Question table = rest(R"({"instances":[[0.5,0.5]]})", table_model());
  settle_range(InputRange::kAuto, table_model(), table);
  EXPECT_EQ(table.warning, "");
  EXPECT_THAT(numbers_of(table), ElementsAre(0.5F, 0.5F));
  Question warned = settled(unit, InputRange::kByte);
  const json answer = json::parse(rest_answer(warned, image_model(), std::vector<float>{1, 0, 0}));
  EXPECT_EQ(answer["warnings"].size(), 1U);
}

TEST(ServeRest, ARowOfATableIsNamedOrInOrder) {
  EXPECT_THAT(numbers_of(rest(R"({"instances": [[1, 2]]})", table_model())), ElementsAre(1, 2));
  EXPECT_THAT(numbers_of(rest(R"({"instances": [{"y": 2, "x": 1, "z": "no"}, {"x": [3], "y": 4}]})",
                              table_model())),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(numbers_of(rest(R"({"examples": [{"x": -1, "y": 0.25}]})", table_model(),
                              ApiCall::kClassify)),
              ElementsAre(-1, 0.25));
}

TEST(ServeRest, WhatDoesNotFitIsToldInASentence) {
  const auto sentence = [](std::string_view body, const TrainedModel& model = image_model(),
                           ApiCall call = ApiCall::kPredict) {
    const auto refusal = refusal_of([&] { rest(body, model, call); });
    EXPECT_EQ(refusal.first, 400) << body;
    return refusal.second;
  };
  EXPECT_THAT(sentence(R"({"instances": [[1,2,3]]})"), HasSubstr("the shape is [1, 3]"));
  EXPECT_THAT(sentence(R"({"instances": [[[0,1,2],[3,4]]]})"), HasSubstr("3 and 2 elements"));
  EXPECT_THAT(sentence(R"({"instances": [[[0,1,2],[[3],[4],[5]]]]})"), HasSubstr("number"));
  EXPECT_THAT(sentence(R"({"instances": []})"), HasSubstr("one row at least"));
  EXPECT_THAT(sentence(R"({"instances": 7})"), HasSubstr("array"));
  EXPECT_THAT(sentence("{}"), HasSubstr("instances is missing"));
  EXPECT_THAT(sentence(""), HasSubstr("object"));
  EXPECT_THAT(sentence(R"({"instances": [[0,1,2,3,4,NaN]]})"), HasSubstr("NaN"));
  EXPECT_THAT(sentence(R"({"instances": [[0,1,2,3,4,5]], "inputs": [[0]]})"), HasSubstr("twice"));
  EXPECT_THAT(sentence(R"({"instances": [[0,1,2,3,4,5]]} x)"), HasSubstr("after the end"));
  EXPECT_THAT(sentence(R"({"signature_name": "x", "instances": [[0,1,2,3,4,5]]})"),
              HasSubstr("signature_name: \"x\""));
  EXPECT_THAT(sentence(R"({"instances": [{"b64": "!!"}]})"), HasSubstr("base64"));
  const std::string no_rows =  // an array of NumPy of the shape (0, 6)
      "k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3"
      "NoYXBlJzogKDAsIDYpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
      "ICAgICAgICAgICAgICAgICAgICAgIAo=";
  EXPECT_THAT(sentence(R"({"instances": [{"b64": ")" + no_rows + R"("}]})"),
              HasSubstr("it has no rows; at least 1 is needed"));
  EXPECT_THAT(sentence(R"({"instances": [{"b64": "H4sIAAAA"}]})"), HasSubstr("gzipped"));
  EXPECT_THAT(sentence(R"({"instances": [{"x": 1}]})"), HasSubstr("\"x\""));
  EXPECT_THAT(sentence(R"({"instances": [{"x": 1}]})", table_model()),
              HasSubstr("lacks the column \"y\""));
  EXPECT_THAT(sentence(R"({"context": {"y": 1}, "examples": [{"x": 1}]})", table_model(),
                       ApiCall::kClassify),
              HasSubstr("context"));
  EXPECT_THAT(sentence(R"({"examples": [{"x": 1, "y": 1}]})", table_model(), ApiCall::kRegress),
              HasSubstr(":classify"));
  EXPECT_THAT(sentence(R"({"examples": [{"x": 1, "y": 1}]})", number_model(), ApiCall::kClassify),
              HasSubstr(":regress"));
}

TEST(ServeRest, AnswersHaveTheShapeOfTheCall) {
  const TrainedModel model = image_model();
  const std::vector<float> outputs = {0.1F, 0.7F, 0.2F, 1, 0, 0};
  Question question = rest(R"({"instances": [[0,1,2,3,4,5],[0,1,2,3,4,5]]})");
  EXPECT_EQ(rest_answer(question, model, outputs),
            "{\"predictions\":[[0.1,0.7,0.2],[1.0,0.0,0.0]]}\n");
  question.by_columns = true;
  EXPECT_EQ(rest_answer(question, model, outputs), "{\"outputs\":[[0.1,0.7,0.2],[1.0,0.0,0.0]]}\n");
  question.call = ApiCall::kClassify;
  const json classes = json::parse(rest_answer(question, model, outputs));
  EXPECT_EQ(classes["results"][0][1], json({"\"far\"", 0.7}));
  question.call = ApiCall::kRegress;
  question.count = 2;
  EXPECT_EQ(rest_answer(question, number_model(), std::vector<float>{1.5F, -2}),
            "{\"results\":[1.5,-2.0]}\n");
}

TEST(ServeRest, AnAnswerThatIsNoNumberIsNone) {
  const Question question = rest(R"({"instances": [[0,1,2,3,4,5]]})");
  EXPECT_EQ(refusal_of([&] {
              static_cast<void>(
                  rest_answer(question, image_model(), std::vector<float>{0, NAN, INFINITY}));
            }).first,
            500);
}

TEST(ServeRest, StatusAndMetadataAreJson) {
  const std::vector<VersionStatus> versions = {
      {.version = 9}, {.version = 10, .is_available = false, .sentence = "it is \"torn\""}};
  const json status = json::parse(rest_status(versions))["model_version_status"];
  EXPECT_EQ(status[0]["state"], "AVAILABLE");
  EXPECT_EQ(status[0]["version"], "9");
  EXPECT_EQ(status[1]["status"]["error_message"], "it is \"torn\"");
  const TrainedModel model = image_model();
  const json metadata = json::parse(rest_metadata({.name = "m", .version = 9, .model = &model}));
  const json signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
  EXPECT_EQ(metadata["model_spec"]["version"], "9");
  EXPECT_EQ(signature["inputs"]["inputs"]["tensor_shape"]["dim"].size(), 4U);
  EXPECT_EQ(signature["outputs"]["probabilities"]["tensor_shape"]["dim"][1]["size"], "3");
}

TEST(ServeInference, TensorsComeAsJsonFlatOrNested) {
  for (const char* data : {"[0,1,2,3,4,5]", "[[0,1,2,3,4,5]]", "[[[0,1,2],[3,4,5]]]"}) {
    const bool is_image = std::string_view(data).starts_with("[[[");
    const std::string shape = is_image ? "[1,2,3]" : "[1,6]";
    const Question question =
        infer(R"({"id":"a7","inputs":[{"data":)" + std::string(data) + R"(,"name":"inputs",)" +
              R"("shape":)" + shape + R"(,"datatype":"FP32"}]})");
    EXPECT_EQ(question.count, 1U);
    EXPECT_EQ(question.id, "a7");
    EXPECT_THAT(pixels_of(question), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(ServeInference, TensorsComeAsBytesBehindTheJson) {
  const auto ask = [](const std::string& datatype, const std::string& bytes,
                      const TrainedModel& model, const std::string& shape) {
    const std::string head =
        R"({"inputs":[{"name":"inputs","shape":)" + shape + R"(,"datatype":")" + datatype +
        R"(","parameters":{"binary_data_size":)" + std::to_string(bytes.size()) + "}}]}";
    return infer(head + bytes, model, head.size());
  };
  EXPECT_THAT(pixels_of(ask("UINT8", std::string("\0\1\2\3\4\377", 6), image_model(), "[1,2,3]")),
              ElementsAre(0, 1, 2, 3, 4, 255));
  const std::vector<float> floats = {1.5F, -2};
  const std::string bytes(reinterpret_cast<const char*>(floats.data()), 8);
  EXPECT_THAT(numbers_of(ask("FP32", bytes, table_model(), "[1,2]")), ElementsAre(1.5, -2));
  EXPECT_EQ(refusal_of([&] { ask("FP32", bytes, table_model(), "[2,2]"); }).first, 400);
  EXPECT_EQ(refusal_of([&] { ask("FP64", bytes, table_model(), "[1,2]"); }).first, 400);
  EXPECT_EQ(refusal_of([&] { ask("BYTES", "\1\0\0", image_model(), "[1]"); }).first, 400);
  const float nan = NAN;
  const std::string no_number(reinterpret_cast<const char*>(&nan), 4);
  EXPECT_EQ(refusal_of([&] { ask("FP32", no_number + no_number, table_model(), "[1,2]"); }).first,
            400);
  EXPECT_EQ(refusal_of([&] { infer("{}", image_model(), 3); }).first, 400);
}

TEST(ServeInference, WhatDoesNotFitIsToldInASentence) {
  const auto sentence = [](const std::string& tensor) {
    const auto refusal = refusal_of([&] { infer("{\"inputs\":[" + tensor + "]}"); });
    EXPECT_EQ(refusal.first, 400) << tensor;
    return refusal.second;
  };
  EXPECT_THAT(sentence(R"({"name":"x","shape":[1,6],"datatype":"FP32","data":[0,1,2,3,4,5]})"),
              HasSubstr("\"x\""));
  EXPECT_THAT(sentence(R"({"name":"inputs","shape":[1,6],"datatype":"FP16","data":[0,1,2,3,4,5]})"),
              HasSubstr("FP16"));
  EXPECT_THAT(sentence(R"({"name":"inputs","shape":[2,6],"datatype":"FP32","data":[0,1,2,3,4,5]})"),
              HasSubstr("the shape [2, 6]"));
  EXPECT_THAT(sentence(R"({"name":"inputs","shape":[6],"datatype":"FP32","data":[0,1,2,3,4,5]})"),
              HasSubstr("the shape is [6]"));
  EXPECT_THAT(
      sentence(R"({"name":"inputs","shape":[1,6],"datatype":"UINT8","data":[0,1,2,3,4,-5]})"),
      HasSubstr("UINT8"));
  EXPECT_THAT(
      sentence(R"({"name":"inputs","shape":[4611686018427387904,24],"datatype":"FP32","data":[]})"),
      HasSubstr("shape"));
  EXPECT_THAT(sentence(R"({"name":"inputs","shape":[1,6],"datatype":"FP32"})"),
              HasSubstr("data is missing"));
  EXPECT_THAT(refusal_of([] { infer("{}"); }).second, HasSubstr("inputs is missing"));
}

TEST(ServeInference, AnswersAreJsonOrBytesOrClasses) {
  const TrainedModel model = image_model();
  const Addressee asked{.name = "m", .version = 9, .model = &model};
  const std::vector<float> outputs = {0.1F, 0.7F, 0.2F};
  Question question = infer(
      R"({"id":"a","inputs":[{"name":"inputs","shape":[1,6],"datatype":"FP32","data":[0,1,2,3,4,5]}]})");
  const json plain = json::parse(infer_answer(question, asked, outputs).body);
  EXPECT_EQ(plain["model_version"], "9");
  EXPECT_EQ(plain["id"], "a");
  EXPECT_EQ(plain["outputs"][0]["shape"], json({1, 3}));
  EXPECT_EQ(plain["outputs"][0]["data"][1].get<float>(), 0.7F);
  question.wants_binary = true;
  const ApiAnswer binary = infer_answer(question, asked, outputs);
  ASSERT_EQ(binary.body.size(), binary.json_bytes + 12);
  float second = 0;
  std::memcpy(&second, binary.body.data() + binary.json_bytes + 4, 4);
  EXPECT_EQ(second, 0.7F);
  question.wants_binary = false;
  question.top = 2;
  const json classes = json::parse(infer_answer(question, asked, outputs).body);
  EXPECT_EQ(classes["outputs"][0]["data"], json({"0.7:1:\"far\"", "0.2:2:out"}));
  EXPECT_EQ(classes["outputs"][0]["shape"], json({1, 2}));
  const json facts = json::parse(inference_metadata(asked, std::vector<std::uint64_t>{9, 8}));
  EXPECT_EQ(facts["versions"], json({"9", "8"}));
  EXPECT_EQ(facts["inputs"][0]["shape"], json({-1, 2, 3, 1}));
}

class ServeQueue : public testing::Test {
 protected:
  using Sizes = std::vector<std::size_t>;

  Waiting& waiting(std::size_t rows, const void* model = nullptr) {
    return all_.emplace_back(
        Waiting{.model = model, .rows = rows, .deadline = steady_clock::time_point::max()});
  }
  Sizes take(BatchQueue& queue, std::size_t most) {
    queue.take({}, most, batch_, late_);
    Sizes sizes;
    for (const BatchPiece& each : batch_) {
      sizes.push_back(each.rows);
    }
    return sizes;
  }
  std::deque<Waiting> all_;
  std::vector<BatchPiece> batch_;
  std::vector<Waiting*> late_;
};

TEST_F(ServeQueue, AllThatWaitGoTogetherUpToTheBound) {
  BatchQueue queue(100);
  for (const std::size_t rows : Sizes{1, 1, 5, 1}) {
    EXPECT_TRUE(queue.admit(waiting(rows)));
  }
  EXPECT_EQ(take(queue, 4), (Sizes{1, 1, 2}));
  EXPECT_EQ(batch_.back().begin, 0U);
  EXPECT_EQ(queue.rows(), 4U);
  EXPECT_EQ(take(queue, 4), (Sizes{3, 1}));
  EXPECT_EQ(batch_.front().begin, 2U);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(take(queue, 4), Sizes{});
}

TEST_F(ServeQueue, ModelsAreNotMixed) {
  const int one = 0;
  const int other = 0;
  BatchQueue queue(100);
  EXPECT_TRUE(queue.admit(waiting(1, &one)));
  EXPECT_TRUE(queue.admit(waiting(1, &other)));
  EXPECT_TRUE(queue.admit(waiting(1, &other)));
  EXPECT_EQ(take(queue, 4), (Sizes{1}));
  EXPECT_EQ(take(queue, 4), (Sizes{1, 1}));
}

TEST_F(ServeQueue, IsBounded) {
  BatchQueue queue(4);
  EXPECT_TRUE(queue.admit(waiting(10)));  // the queue is empty
  EXPECT_FALSE(queue.admit(waiting(1)));
  EXPECT_EQ(take(queue, 8), (Sizes{8}));
  EXPECT_TRUE(queue.admit(waiting(2)));
  EXPECT_FALSE(queue.admit(waiting(1)));
}

TEST_F(ServeQueue, WhoWaitedTooLongIsNotComputed) {
  BatchQueue queue(100);
  Waiting& late = waiting(3);
  late.deadline = steady_clock::time_point();
  EXPECT_TRUE(queue.admit(late));
  EXPECT_TRUE(queue.admit(waiting(1)));
  queue.take(steady_clock::time_point() + std::chrono::seconds(1), 4, batch_, late_);
  EXPECT_THAT(late_, ElementsAre(&late));
  EXPECT_EQ(batch_.size(), 1U);
  EXPECT_EQ(queue.rows(), 0U);
}

}  // namespace
}  // namespace disttf::roles
