// What a trained model is asked with, and what its answers look like.
#include <gmock/gmock.h>
#include <png.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/gzip.h"
#include "data/idx.h"
#include "data/own/row_source.h"
#include "data/posix_file_system.h"
#include "model/model_files.h"
#include "model/predict/answer_text.h"
#include "model/predict/example_reader.h"
#include "model/predict/predict_command.h"
#include "model/trained_model.h"
#include "roles/serve/shell/model_registry.h"
#include "roles/serve/shell/serve_meters.h"
#include "run/monitor/shell/metric_registry.h"
#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/own/arrays_on_disk.h"
#include "tests/data/own/images_on_disk.h"
#include "tests/data/scratch.h"
#include "tests/run/run_configs.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

// Of two columns and three classes.
TrainedModel table_model() {
  TrainedModel model;
  model.config.model.numbers = true;
  model.config.model.input = {.height = 1, .width = 1, .channels = 2};
  model.config.model.classes = 3;
  model.config.examples = {.classes = {"near", "middle", "far"},
                           .columns = {"x", "y"},
                           .label = "heap",
                           .means = {0, 0},
                           .scales = {1, 1}};
  return model;
}

// Of grey images of 2x3.
TrainedModel image_model() {
  TrainedModel model;
  model.config.model.input = {.height = 2, .width = 3};
  model.config.model.classes = 10;
  return model;
}

TrainedModel number_model() {
  TrainedModel model = table_model();
  model.config.model.classes = 1;
  model.config.model.loss = math::LossKind::kMeanSquaredError;
  model.config.examples.classes.clear();
  return model;
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Examples table(std::string_view text, const TrainedModel& model = table_model()) {
  return read_examples(bytes_of(text), "t.csv", model);
}

std::string refusal(const std::function<void()>& use) {
  return sentence_of<data::UnusableData>(use, "nothing was thrown");
}

std::string refusal_of(std::string_view text, const TrainedModel& model = table_model()) {
  return refusal([&] { static_cast<void>(table(text, model)); });
}

TEST(AnswerText, NamesTheLikeliestClasses) {
  const std::array<float, 3> outputs = {0.25F, 0.5F, 0.25F};
  EXPECT_EQ(answer_text(table_model(), {.name = "a.csv", .row = 2}, outputs, 1),
            "a.csv row 2: middle (0.5000)");
  EXPECT_EQ(answer_text(table_model(), {.name = "a.csv", .row = 2, .label = 2}, outputs, 9),
            "a.csv row 2: middle (0.5000), near (0.2500), far (0.2500) instead of far");
  EXPECT_EQ(answer_text(table_model(), {.name = "a\nb", .label = 1}, outputs, 1).find('\n'),
            std::string::npos);
}

TEST(AnswerText, TellsANumberInItsUnit) {
  const std::array<float, 1> outputs = {151.25F};
  EXPECT_EQ(answer_text(number_model(), {.name = "a.csv", .row = 1, .target = 148.0}, outputs, 1),
            "a.csv row 1: 151.25 instead of 148");
}

TEST(AnswerText, ANumberThatIsNoneIsNoAnswer) {
  const std::array<float, 3> outputs = {0.1F, std::nanf(""), 0.3F};
  EXPECT_EQ(answer_text(table_model(), {.name = "a.csv"}, outputs, 3), "a.csv: not a number");
  const auto json =
      nlohmann::json::parse(answer_json(table_model(), {.name = "a.csv"}, outputs, 3));
  EXPECT_TRUE(json["label"].is_null());
  EXPECT_TRUE(json["probabilities"][1].is_null());
}

TEST(AnswerJson, HasWhatIsKnown) {
  const std::array<float, 3> outputs = {0.2F, 0.7F, 0.1F};
  const std::string text =
      answer_json(table_model(), {.name = "a.csv", .row = 4, .label = 0}, outputs, 2);
  EXPECT_EQ(text,
            R"({"input":"a.csv","row":4,"label":"middle","probability":0.7,"expected":"near",)"
            R"("top":[{"label":"middle","probability":0.7},{"label":"near","probability":0.2}],)"
            R"("probabilities":[0.2,0.7,0.1]})");
}

TEST(Tables, FindTheColumnsByName) {
  const Examples rows = table("name,y,heap,x\na,2,far,1\n\nb,4.5,near,-3e1\n");
  EXPECT_THAT(rows.numbers, ElementsAre(1, 2, -30, 4.5));
  EXPECT_THAT(rows.labels, ElementsAre(2, 0));
  EXPECT_FALSE(rows.is_single);
}

TEST(Tables, WithoutNamesAreTakenInOrder) {
  EXPECT_THAT(table("1;2\r\n3;4\r\n").numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table("1,2").numbers, ElementsAre(1, 2));
}

// A table without names, label and all, as a model was trained on it.
TrainedModel numbered_model() {
  TrainedModel model = table_model();
  model.config.examples.columns = {"1", "3"};
  model.config.examples.label = "2";
  return model;
}

TEST(Tables, WithoutNamesMayHaveAllColumnsOfTheTableThatWasTrainedOn) {
  const Examples rows = table("1,near,2\n3,far,4\n", numbered_model());
  EXPECT_THAT(rows.numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(rows.labels, ElementsAre(0, 2));
  EXPECT_THAT(table("1,2\n", numbered_model()).numbers, ElementsAre(1, 2));
  EXPECT_THAT(refusal_of("1,2,3,4\n"), HasSubstr("line 1 has 4 cells; the model takes 2 numbers"));
}

TEST(Tables, MayBeginWithAByteOrderMarkAndEmptyLines) {
  EXPECT_THAT(table("\xEF\xBB\xBFx,y,heap\r\n1,2,far\r\n").labels, ElementsAre(2));
  EXPECT_THAT(table("\n \nx,y\n1,2\n").numbers, ElementsAre(1, 2));
  EXPECT_THAT(table("\xEF\xBB\xBF"
                    "1,2\n")
                  .numbers,
              ElementsAre(1, 2));
}

TEST(Tables, KnowNamesThatAreNumbers) {
  TrainedModel model = table_model();
  model.config.examples.columns = {"0", "1"};
  model.config.examples.label = "label";
  EXPECT_THAT(table("0,1,label\n3,4,near\n", model).numbers, ElementsAre(3, 4));
  EXPECT_THAT(table("1,0\n3,4\n", model).numbers, ElementsAre(4, 3));
}

TEST(Tables, KnowNamesInQuotesAndSecondOnes) {
  TrainedModel model = table_model();
  model.config.examples.columns = {"x\n(mm)", "Unnamed: 1"};
  EXPECT_THAT(table("\"x\n(mm)\",,heap\n1,2,far\n", model).numbers, ElementsAre(1, 2));
  model.config.examples.columns = {"x", "x.1"};
  EXPECT_THAT(table("x,x\n1,2\n", model).numbers, ElementsAre(1, 2));
  EXPECT_THAT(table("a;\"b;c;d\";heap;x;x\n0;0;far;1;2\n", model).numbers, ElementsAre(1, 2));
}

TEST(Tables, HaveLabelsAsTrainingReadsThem) {
  TrainedModel model = table_model();
  model.config.examples.classes = {"1", "f\xC3\xBCr", "a\tb"};
  EXPECT_THAT(
      table("x,y,heap\n1,2,1.0\n1,2,+1\n1,2,f\xFCr\n1,2,f\xC3\xBCr\n1,2,\"a\tb\"\n", model).labels,
      ElementsAre(0, 0, 1, 1, 2));
  model.config.examples.classes = {"1.0", "2", "3"};  // as an earlier release called them
  EXPECT_THAT(table("x,y,heap\n1,2,1\n1,2,1.0\n", model).labels, ElementsAre(0, 0));
}

TEST(Tables, NameTheEncodingsThatAreNotRead) {
  EXPECT_THAT(refusal_of(std::string_view("\xFF\xFEx\0,\0y\0", 8)),
              HasSubstr("t.csv: it is UTF-16 text"));
  EXPECT_THAT(refusal_of("x,y\r1,2\r3,4\r"), HasSubstr("its lines end in CR alone"));
}

TEST(Tables, CountLinesOverNewlinesInQuotes) {
  EXPECT_THAT(refusal_of("\n\"x\",y,\"a\nb\"\n1,2,\"c\nd\"\n3,four,5\n"),
              HasSubstr("t.csv: line 6, column 2"));
}

TEST(Tables, TellWhereTheyAreWrong) {
  EXPECT_THAT(refusal_of("x,y\n1,2\n3,four\n"),
              HasSubstr(R"(t.csv: line 3, column 2: "four" is not a finite number)"));
  EXPECT_THAT(refusal_of("x,y\n1,nan\n"), HasSubstr("line 2, column 2"));
  EXPECT_THAT(refusal_of("x,y\n1\n"), HasSubstr("line 2, column 2: the line ends"));
  EXPECT_THAT(refusal_of("x,y\n1,2,3\n"), HasSubstr("line 2, column 3: more cells"));
  EXPECT_THAT(refusal_of("x,y\n\"1,2\n"), HasSubstr("an unclosed quote"));
  EXPECT_THAT(refusal_of("x,z\n1,2\n"), HasSubstr(R"(the column "y" is missing)"));
  EXPECT_THAT(refusal_of("x,y,heap\n1,2,elsewhere\n"), HasSubstr("is not a class of the model"));
  EXPECT_THAT(refusal_of("1,2,3\n"), HasSubstr("line 1 has 3 cells; the model takes 2 numbers"));
  EXPECT_THAT(refusal_of("x,y\n"), HasSubstr("it has no row"));
  EXPECT_THAT(refusal_of(""), HasSubstr("t.csv: "));
  EXPECT_THAT(refusal_of(std::string_view("x\0y", 3)), HasSubstr("neither a PNG"));
}

TEST(Tables, OfNumbersHaveTargets) {
  EXPECT_THAT(table("heap,x,y\n7.5,1,2\n", number_model()).targets, ElementsAre(7.5));
}

TEST(Images, OfTheModelsSizeAreTaken) {
  const Bytes pixels = {0, 50, 100, 150, 200, 250};
  const Examples one =
      read_examples(data::test::png(2, 3, PNG_FORMAT_GRAY, pixels), "a.png", image_model());
  EXPECT_EQ(one.pixels, pixels);
  EXPECT_TRUE(one.is_single);
}

TEST(Images, OfAnotherSizeOrKindAreRefused) {
  const Bytes pixels(18, 7);
  const auto read = [&](std::uint32_t height, std::uint32_t width, std::uint32_t format,
                        const TrainedModel& model) {
    return refusal([&] {
      static_cast<void>(
          read_examples(data::test::png(height, width, format, pixels), "a.png", model));
    });
  };
  EXPECT_EQ(read(3, 2, PNG_FORMAT_GRAY, image_model()),
            "a.png: it is 3x2, grey; the model takes 2x3, grey");
  EXPECT_EQ(read(2, 3, PNG_FORMAT_RGB, image_model()),
            "a.png: it is 2x3, colour; the model takes 2x3, grey");
  EXPECT_EQ(read(2, 3, PNG_FORMAT_GRAY, table_model()),
            "a.png: it is an image, but the model takes rows of 2 numbers");
  Bytes half = data::test::png(2, 3, PNG_FORMAT_GRAY, pixels);
  half.resize(half.size() / 2);
  EXPECT_THAT(refusal([&] { static_cast<void>(read_examples(half, "a.png", image_model())); }),
              HasSubstr("a.png: "));
}

TEST(Images, OfAnIdxFileAreRows) {
  Bytes file = data::images_header(2, {.height = 2, .width = 3});
  const Bytes pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  file.insert(file.end(), pixels.begin(), pixels.end());
  EXPECT_EQ(read_examples(file, "a.idx", image_model()).pixels, pixels);
  file.pop_back();
  EXPECT_THAT(refusal([&] { static_cast<void>(read_examples(file, "a.idx", image_model())); }),
              HasSubstr("a.idx: "));
  Bytes labels = data::labels_header(3);
  labels.insert(labels.end(), {3, 9, 0});
  EXPECT_THAT(read_labels(labels, "l.idx", image_model()), ElementsAre(3, 9, 0));
  labels.back() = 10;
  EXPECT_THAT(refusal([&] { static_cast<void>(read_labels(labels, "l.idx", image_model())); }),
              HasSubstr("l.idx: "));
}

// Labels of IDX files are the numbers that classes are called by, or the places of names.
TEST(Images, HaveLabelsByTheNumbersThatClassesAreCalledBy) {
  TrainedModel model = image_model();
  model.config.model.classes = 3;
  model.config.examples.classes = {"1", "5", "200"};
  Bytes labels = data::labels_header(3);
  labels.insert(labels.end(), {200, 1, 5});
  EXPECT_THAT(read_labels(labels, "l.idx", model), ElementsAre(2, 0, 1));
  labels.back() = 0;
  EXPECT_EQ(refusal([&] { static_cast<void>(read_labels(labels, "l.idx", model)); }),
            "l.idx: label 0 in row 2 is not a class of the model");
  model.config.examples.classes = {"shirt", "coat", "9"};
  labels.resize(labels.size() - 3);
  labels.insert(labels.end(), {2, 0, 1});
  EXPECT_THAT(read_labels(labels, "l.idx", model), ElementsAre(2, 0, 1));
}

// 64 MiB of zeros behind the header of one image.
TEST(Compressed, InflateNoMoreThanTheirHeaderSays) {
  Bytes file = data::images_header(1, {.height = 2, .width = 3});
  file.resize(std::size_t{64} << 20U);
  const std::string packed = data::gzip({reinterpret_cast<const char*>(file.data()), file.size()});
  EXPECT_EQ(refusal([&] {
              static_cast<void>(read_examples(bytes_of(packed), "a.idx.gz", image_model()));
            }),
            "a.idx.gz: the gzip file expands to more than the limit");
}

TEST(Arrays, AreRowsOrOneExample) {
  const auto array = [](std::string_view type, std::string_view shape, std::size_t bytes) {
    const Bytes elements(bytes, 1);
    return data::test::npy(type, shape, elements);
  };
  const auto rows_of = [&](const Bytes& file) {
    const Examples read = read_examples(file, "a.npy", image_model());
    return std::pair(read.rows(6), read.is_single);
  };
  EXPECT_EQ(rows_of(array("|u1", "(2, 2, 3)", 12)), std::pair(std::size_t{2}, false));
  EXPECT_EQ(rows_of(array("|u1", "(2, 3)", 6)), std::pair(std::size_t{1}, true));
  EXPECT_EQ(rows_of(array("<f4", "(3, 6)", 72)), std::pair(std::size_t{3}, false));
  const auto why = [&](const Bytes& file) {
    return refusal([&] { static_cast<void>(read_examples(file, "a.npy", image_model())); });
  };
  // As many numbers are not enough: of another shape they are in another order.
  EXPECT_EQ(rows_of(array("|u1", "(2, 1, 2, 3)", 12)), std::pair(std::size_t{2}, false));
  EXPECT_EQ(rows_of(array("|u1", "(2, 2, 3, 1)", 12)), std::pair(std::size_t{2}, false));
  for (const char* shape : {"(2, 3, 2)", "(2, 2, 1, 3)", "(3, 2)", "(2, 6, 1)"}) {
    EXPECT_THAT(why(array("|u1", shape, shape[1] == '3' ? 6 : 12)),
                HasSubstr("the model takes rows of 6 (2x3)"));
  }
  EXPECT_THAT(why(array("|u1", "(2, 5)", 10)), HasSubstr("the model takes rows of 6 (2x3)"));
  EXPECT_THAT(why(array("|u1", "(2, 6)", 11)), HasSubstr("it has 11 bytes of elements"));
  EXPECT_THAT(why(array("|u1", "(2, 6)", 13)), HasSubstr("it has 13 bytes of elements"));
}

// Reading a trained model from the disk, from a checkpoint whose author is not trusted.

TEST(ModelFiles, AModelThatNoneCanBeIsRefusedByItsCheckpointsName) {
  const data::test::ScratchDirectory scratch;
  data::PosixFileSystem disk;
  math::ParameterLayout layout;
  layout.add("w", {2});
  auto configuration = nlohmann::json::parse(to_saved_json(base_config()));
  configuration["model"] = nlohmann::json::array({{{"type", "dense"}, {"units", 0}}});
  CheckpointStore(disk, scratch.path())
      .save(1, {.step = 3, .parameters = math::AlignedVector(layout.size()), .optimizer = {}},
            layout, configuration.dump(), 0);
  const auto failure = thrown<Failure>([&] { return read_model(scratch.path()); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(), testing::HasSubstr("checkpoint-00000003"));
  EXPECT_THAT(failure->what(), testing::HasSubstr("units: 0"));
}

// A model of a few parameters, the outputs of whose first layer take 32 GiB for each row.
TrainedModel model_with_huge_outputs() {
  TrainedModel model;
  model.config = base_config();
  model.config.model.input = {.height = 1024, .width = 1024, .channels = 1};
  model.config.model.classes = 2;
  const auto layer = [](const char* type, math::LayerValues fields) {
    return math::LayerSpec{.type = type, .name = "", .fields = std::move(fields)};
  };
  model.config.model.layers = {
      layer("conv2d", {{"channels", 4096.0}, {"kernel", 1.0}}), layer("max_pool", {{"size", 32.0}}),
      layer("max_pool", {{"size", 32.0}}), layer("flatten", {}), layer("dense", {{"units", 2.0}})};
  model.parameters = math::AlignedVector(math::layout_of(model.config.model).size());
  return model;
}

template <typename Work>
Failure failure_of(Work work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure;
  }
  return {kDone, "nothing was thrown"};
}

TEST(ModelFiles, AModelWhoseOutputsNoMemoryHoldsIsRefusedBeforeAnyIsTaken) {
  const data::test::ScratchDirectory scratch;
  data::PosixFileSystem disk;
  TrainedModel model = model_with_huge_outputs();
  CheckpointStore(disk, scratch.path())
      .save(1, {.step = 3, .parameters = std::move(model.parameters), .optimizer = {}},
            math::layout_of(model.config.model), to_saved_json(model.config), 0);
  PredictOptions options;
  options.model = scratch.path();
  const Failure failure = failure_of([&] { static_cast<void>(run_predict(options)); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_THAT(failure.what(), testing::StartsWith("this process does not have the memory for the "
                                                  "outputs of all layers of the model: it takes"));
}

TEST(ModelFiles, ServeRefusesSuchAModelToo) {
  MetricRegistry metrics;
  ServeMeters meters(metrics, 1);
  const ModelRegistry registry(/*threads=*/1, /*max_rows=*/64, meters);
  const Failure failure =
      failure_of([&] { static_cast<void>(registry.try_out(model_with_huge_outputs(), "m")); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_THAT(failure.what(), testing::HasSubstr("the outputs of all layers of m: it takes"));
}

}  // namespace
}  // namespace disttf::roles
