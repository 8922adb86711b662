// docs/wire_format.md names for each kind of frame the header fields that its messages have.
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "tests/net/all_messages.h"

namespace disttf::net {
namespace {

using Words = std::set<std::string>;

const std::array<std::pair<std::string, std::uint64_t FrameHeader::*>, 4> kWords = {{
    {"step", &FrameHeader::step},
    {"sequence", &FrameHeader::sequence},
    {"range_begin", &FrameHeader::range_begin},
    {"generation", &FrameHeader::generation},
}};

// By kind: the words that a header of it may have.
std::map<int, Words> words_of_messages() {
  std::map<int, Words> words;
  for (int kind = 1; kind < 256; ++kind) {
    AllMessages::for_each([&](auto message) {
      // PULL with *next* has words that a plain one lacks.
      for (const std::uint16_t flags : {std::uint16_t{0}, std::uint16_t{kFlagNext}}) {
        const FrameHeader empty{.kind = static_cast<FrameKind>(kind), .flags = flags};
        if (message.from_header(empty)) continue;
        words[kind];
        for (const auto& [name, place] : kWords) {
          FrameHeader header = empty;
          header.*place = 1;
          if (!message.from_header(header)) words[kind].insert(name);
        }
      }
    });
  }
  return words;
}

std::map<int, Words> words_of_the_document() {
  static const std::regex kNumber(R"(^ {4,7}(\d+) [A-Z])");
  static const std::regex kWord(R"(\b(step|sequence|range_begin|share|generation)\b)");
  std::ifstream file(DISTTF_SOURCE_DIR "/docs/wire_format.md");
  std::map<int, Words> words;
  std::size_t column = 0;  // of the fields; 0: the table has not begun
  int kind = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("    kind name")) {
      column = line.find("other fields");
      continue;
    }
    if (column == 0) continue;
    if (line.empty()) break;
    std::smatch number;
    if (std::regex_search(line, number, kNumber)) kind = std::stoi(number[1]);
    words[kind];
    const std::string fields = line.size() > column ? line.substr(column) : std::string();
    for (std::sregex_iterator at(fields.begin(), fields.end(), kWord); at != std::sregex_iterator();
         ++at) {
      words[kind].insert((*at)[1] == "share" ? "range_begin" : (*at)[1].str());
    }
  }
  return words;
}

TEST(FrameKinds, HaveTheFieldsThatTheDocumentNames) {
  EXPECT_EQ(words_of_the_document(), words_of_messages());
}

}  // namespace
}  // namespace disttf::net
