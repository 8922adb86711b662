// Records of pictures: which images are selected, what is recorded about them, and that each is a
// picture of its own.
#include "roles/chief/shell/record_pictures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "math/model.h"
#include "run/monitor/core/record.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

class WrongPictures : public testing::Test {
 protected:
  // Every second answer is wrong.
  WrongPictures() {
    data_.shape = {.height = 28, .width = 28, .channels = 1};
    data_.classes = 3;
    data_.class_names = names_;
    data_.test = {.images = images_, .labels = labels_};
    for (std::size_t row = 0; row < kRows; ++row) {
      labels_[row] = 1;
      test_.answers.push_back(row % 2 == 0 ? 1 : 2);
    }
  }

  static constexpr std::size_t kRows = 100;
  std::vector<std::uint8_t> images_ = std::vector<std::uint8_t>(kRows * 28 * 28, 7);
  std::vector<std::uint8_t> labels_ = std::vector<std::uint8_t>(kRows);
  std::vector<std::string_view> names_ = {"cat", "dog"};
  data::Dataset data_;
  math::Evaluation test_;
};

TEST_F(WrongPictures, AreTheFirstOnesWithWhatTheyAreAndAreTakenFor) {
  const std::vector<std::string> lines = wrong_picture_lines(data_, test_, 12, 3.5);
  ASSERT_EQ(lines.size(), kMostWrongPictures);
  for (std::size_t each = 0; each < lines.size(); ++each) {
    const Json record = Json::parse(lines[each]);
    EXPECT_EQ(record.at("set"), "wrong");
    EXPECT_EQ(record.at("step"), 12);
    EXPECT_EQ(record.at("index"), each);
    EXPECT_EQ(record.at("label"), "dog");
    EXPECT_EQ(record.at("answer"), "2") << "a class without a name is its number";
    EXPECT_EQ(record.at("png").get<std::string>().substr(0, 11), "iVBORw0KGgo");
  }
  test_.answers.assign(kRows, 3);
  EXPECT_EQ(Json::parse(wrong_picture_lines(data_, test_, 1, 1)[0]).at("answer"), "none");
  test_.answers.assign(kRows, 1);
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
}

TEST_F(WrongPictures, AreNotThereOfWhatIsNoPicture) {
  data_.shape.channels = 2;
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
  data_.shape.channels = 1;
  data_.test.images = {};
  EXPECT_TRUE(wrong_picture_lines(data_, test_, 1, 1).empty());
}

TEST_F(WrongPictures, OfImagesTooLargeForARecordAreLeftOut) {
  for (std::size_t each = 0; each < images_.size(); ++each) {  // hard to compress
    images_[each] = static_cast<std::uint8_t>((each * 2'654'435'761U) >> 13U);
  }
  data_.shape = {.height = 112, .width = 112, .channels = 1};
  test_.answers.resize(4);
  for (const std::string& line : wrong_picture_lines(data_, test_, 1, 1)) {
    EXPECT_LE(line.size(), kMaxRecordBytes);
  }
}

TEST(FilterPictures, AreOneOfEachUnit) {
  const math::ModelSpec spec{.hidden = {7}};
  const math::Model model(spec, 1, math::Isa::kGeneric);
  std::vector<float> parameters(model.layout().size());
  model.initialize(1, parameters);
  const std::vector<std::string> lines =
      filter_picture_lines(spec, model.layout(), parameters, 5, 1);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(Json::parse(lines[6]).at("index"), 6);
  EXPECT_NE(Json::parse(lines[5]).at("png"), Json::parse(lines[6]).at("png"));
}

// The weights of a user's program are in an order that it alone has.
TEST(FilterPictures, AreNotMadeOfAProgram) {
  const math::ModelSpec spec{.variables = {{.name = "w", .shape = {784, 7}}}};
  const math::ParameterLayout layout = math::layout_of(spec);
  const std::vector<float> parameters(layout.size());
  EXPECT_TRUE(filter_picture_lines(spec, layout, parameters, 5, 1).empty());
}

}  // namespace
}  // namespace disttf::roles
