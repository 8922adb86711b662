// Replays each file of tests/transcripts: tasks must print the log lines in it. After an intended
// change, `disttf_simulate --transcript FILE` prints the new contents.
#include "tests/sim/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "math/denormals.h"

namespace disttf::sim {
namespace {

std::vector<std::string> names_of_transcripts() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(DISTTF_TRANSCRIPTS)) {
    names.push_back(file.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

class TranscriptTest : public testing::TestWithParam<std::string> {};

TEST_P(TranscriptTest, TasksSayWhatItSays) {
  math::flush_denormals();
  const std::string path = std::string(DISTTF_TRANSCRIPTS) + "/" + GetParam() + ".txt";
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(replay_transcript(parse_transcript(text.str())), text.str())
      << "disttf_simulate --transcript " << path << " --trace";
}
INSTANTIATE_TEST_SUITE_P(Files, TranscriptTest, testing::ValuesIn(names_of_transcripts()),
                         [](const auto& named) { return named.param; });

TEST(TranscriptTest, WhatIsNotUnderstoodIsRefused) {
  for (const char* const line :
       {"step 4: tickle ps 0", "noon: kill ps 0", "step 4: kill ps 0 softly", "cluster 3 cooks"}) {
    EXPECT_THROW(static_cast<void>(parse_transcript(line)), std::invalid_argument) << line;
  }
}

}  // namespace
}  // namespace disttf::sim
