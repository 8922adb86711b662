// deploy/helm/disttf: the chart has the flags of the tasks, and the version of disttf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "main/version.h"
#include "tests/main/chart_flags.h"

namespace disttf {
namespace {

// `make flags-document` runs this test with DISTTF_REWRITE set, which rewrites the files.
TEST(Chart, HasTheFlags) {
  const std::string values = read_chart_file("values.yaml");
  const std::string schema = read_chart_file("values.schema.json");
  if (std::getenv("DISTTF_REWRITE") != nullptr) {
    std::ofstream(std::string(kChartPath) + "values.yaml") << with_flag_lines(values);
    std::ofstream(std::string(kChartPath) + "values.schema.json") << with_flag_schemas(schema);
    return;
  }
  EXPECT_EQ(values, with_flag_lines(values)) << "make flags-document regenerates them";
  EXPECT_EQ(schema, with_flag_schemas(schema)) << "make flags-document regenerates them";
}

TEST(Chart, WantsTheMarksOfItsFlags) {
  EXPECT_THROW(static_cast<void>(with_flag_lines("flags: {}\n")), std::invalid_argument);
}

// disttf reports 0.1.0 for a release, and 0.1.0+g1a2b3c4 between releases.
TEST(Chart, HasTheVersionOfTheProduct) {
  const std::string version = std::string(kVersion).substr(0, std::string(kVersion).find('+'));
  const std::string chart = read_chart_file("Chart.yaml");
  EXPECT_THAT(chart, testing::HasSubstr("\nversion: " + version + "\n"));
  EXPECT_THAT(chart, testing::HasSubstr("\nappVersion: \"" + version + "\"\n"));
}

}  // namespace
}  // namespace disttf
