// docs/wire_format.md has a line for each field of a body: offset, size, and a text that begins
// with the field's name. One line may stand for several fields.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/memory/shared_memory.h"
#include "net/wire/handshake.h"
#include "net/wire/replication.h"
#include "net/wire/server_requests.h"
#include "net/wire/snapshot_messages.h"
#include "tests/net/all_messages.h"

namespace disttf::net {
namespace {

constexpr std::size_t kRest = SIZE_MAX;  // up to the end of the body

struct Field {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::string text = {};
  [[nodiscard]] std::size_t end() const { return size == kRest ? kRest : offset + size; }
};

// What a body's description says.
class Fields {
 public:
  template <typename... Arguments>
  void u8(std::string_view name, const Arguments&... /*arguments*/) {
    add(name, 1);
  }
  template <typename... Arguments>
  void u32(std::string_view name, const Arguments&... /*arguments*/) {
    add(name, 4);
  }
  template <typename... Arguments>
  void u64(std::string_view name, const Arguments&... /*arguments*/) {
    add(name, 8);
  }
  template <typename... Bools>
  void bits(std::string_view name, const Bools&... /*members*/) {
    add(name, 1);
  }
  template <typename Integer, std::size_t kCount>
  void array(std::string_view name, const std::array<Integer, kCount>& /*member*/) {
    add(name, kCount * sizeof(Integer));
  }
  template <typename Member>
  void words(std::string_view name, const Member& /*member*/) {
    add(name, kRest);
  }
  template <typename Member>
  void text(std::string_view name, const Member& /*member*/, std::size_t /*most*/) {
    add(name, kRest);
  }
  void reserved(std::size_t count) { add("reserved", count); }
  void require(bool /*condition*/) {}

  std::vector<Field> all;

 private:
  void add(std::string_view name, std::size_t size) {
    all.push_back({.offset = at_, .size = size, .text = std::string(name)});
    at_ += size;
  }

  std::size_t at_ = 0;
};

// The lines of the table that begins with `name`.
std::vector<Field> table_of(const std::string& name) {
  static const std::regex kRow(R"(^ {4}(?:[A-Z_]+,?)? +(\d+) +(\d+|n|8w)  (.*)$)");
  const std::regex head("^ {4}" + name + "(,.*| .*)?$");
  std::ifstream file(DISTTF_SOURCE_DIR "/docs/wire_format.md");
  std::vector<Field> rows;
  bool has_begun = false;
  for (std::string line; std::getline(file, line);) {
    has_begun = has_begun || std::regex_match(line, head);
    std::smatch row;
    if (!has_begun || !std::regex_match(line, row, kRow)) {
      if (has_begun && line.empty()) break;
      continue;
    }
    const std::size_t offset = std::stoul(row[1]);
    if (!rows.empty() && offset <= rows.back().offset) break;  // the next table
    const std::string size = row[2];
    rows.push_back({.offset = offset,
                    .size = std::isdigit(size.back()) != 0 ? std::stoul(size) : kRest,
                    .text = row[3]});
  }
  return rows;
}

// `begin`: where the described part begins in the body.
template <typename Message>
void expect_table(const std::string& name, std::size_t begin = 0) {
  SCOPED_TRACE(name);
  Fields described;
  const Message message{};
  Message::fields_of_body(described, message);
  ASSERT_FALSE(described.all.empty());
  const std::vector<Field> rows = table_of(name);
  for (Field field : described.all) {
    field.offset += begin;
    const auto row = std::ranges::find_if(rows, [&field](const Field& each) {
      return each.offset <= field.offset && field.end() <= each.end();
    });
    ASSERT_NE(row, rows.end()) << field.text << ": no line for the bytes from " << field.offset;
    if (row->offset == field.offset && row->end() == field.end()) {
      EXPECT_EQ(row->text.substr(0, field.text.size()), field.text);
    }
  }
  // No line has bytes that are in no field, but what follows the part.
  const std::size_t end = described.all.back().end();
  for (const Field& row : rows) {
    if (row.offset < begin || (end != kRest && row.offset >= begin + end)) continue;
    EXPECT_TRUE(std::ranges::any_of(described.all, [&](const Field& field) {
      return begin + field.offset == row.offset;
    })) << row.text;
  }
}

TEST(BodyTables, AreWhatTheMessagesAre) {
  expect_table<Hello>("HELLO");
  expect_table<Welcome>("WELCOME");
  expect_table<Refusal>("REFUSED");
  expect_table<WriteSnapshotShard>("WRITE_SNAPSHOT_SHARD");
  expect_table<SharedOffer>("SHARE");
  expect_table<View>("VIEW");
  expect_table<Report>("REPORT");
  expect_table<FillHead>("FILL");
  expect_table<FillTrainer>("FILL", kBodyBytes<FillHead>);
  expect_table<UpdateHead>("UPDATE");
  expect_table<ComputeNode>("COMPUTE");
  expect_table<ComputeResult>("RESULT");
  expect_table<RunTaskRequest>("RUN_TASK");
  expect_table<TaskEnd>("TASK_ENDED");
}

// docs/wire_format.md names for each kind of frame the header fields that its messages have.

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
