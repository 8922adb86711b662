// Every command line of disttf in the documents is one that disttf takes: command, flags and
// values. (What the commands do, tests/process shows; that a flag which a document only mentions is
// one, tests/build/flag_tables_test.sh.)
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "main/command_line.h"
#include "tests/data/scratch.h"

namespace disttf {
namespace {

struct DocumentedLine {
  std::string where;  // docs/serve.md:12
  std::string text;   // without "disttf"
};

std::string trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return std::string(line.substr(begin, line.find_last_not_of(" \t") - begin + 1));
}

// The words behind "disttf" in a line of a code block; empty: the line is another command, or what
// disttf prints ("disttf launch: ..."), or has a part left out ("...").
std::string command_in(std::string line) {
  if (line.starts_with("$ ")) {
    line.erase(0, 2);
  }
  constexpr std::string_view kName = "disttf ";
  if (!line.starts_with(kName)) {
    return {};
  }
  line.erase(0, kName.size());
  const std::string first = line.substr(0, line.find(' '));
  if (first.ends_with(":") || line.find("...") != std::string::npos || line.ends_with("\\n")) {
    return {};
  }
  // What belongs to the shell: comments, pipes, redirections, the next command.
  for (const std::string_view end : {" #", " |", " >", " 2>", " <", " && ", " & ", ";"}) {
    line.erase(std::min(line.find(end), line.size()));
  }
  return trimmed(line);
}

std::vector<DocumentedLine> lines_of(const std::filesystem::path& root,
                                     const std::filesystem::path& document) {
  std::vector<DocumentedLine> found;
  std::ifstream file(root / document);
  bool is_fenced = false;
  std::string joined;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
      continue;
    }
    if (!is_fenced && !line.starts_with("    ") && joined.empty()) {
      continue;
    }
    joined += trimmed(line);
    if (joined.ends_with("\\")) {
      joined.back() = ' ';
      continue;
    }
    if (std::string text = command_in(std::move(joined)); !text.empty()) {
      found.push_back({document.string() + ":" + std::to_string(number), std::move(text)});
    }
    joined.clear();
  }
  return found;
}

// Words as a shell makes them of quotes.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool is_word = false;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      is_word = true;
    } else if (c == ' ') {
      if (is_word) {
        words.push_back(std::move(word));
      }
      word.clear();
      is_word = false;
    } else {
      word += c;
      is_word = true;
    }
    if (word == "$PWD") {
      word = "/work";
    }
  }
  if (is_word) {
    words.push_back(std::move(word));
  }
  return words;
}

// A folder in which the files lie that the lines name: those of the checkout, and others as a user
// would have them.
class DocumentCommands : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"recipes", "examples"}) {
      std::filesystem::create_directory_symlink(root_ / name, scratch_.path() / name);
    }
    std::filesystem::current_path(scratch_.path());
    for (const char* name : {"mnist.secret", "run.secret"}) {
      put(name, kSecret);
      std::filesystem::permissions(name, std::filesystem::perms::owner_read);
    }
    put("mnist.toml", "workers = 2\nps = 1\nsecret = \"mnist\"\n");
    put("small.toml", "[[layer]]\ntype = \"dense\"\nunits = 10\n");
    put("mnist.json", R"({"worker": {"count": 2}})");
  }
  static void put(const char* name, std::string_view text) { std::ofstream(name) << text; }
  void TearDown() override { std::filesystem::current_path(before_); }

  [[nodiscard]] std::vector<DocumentedLine> all_lines() const {
    std::vector<std::filesystem::path> documents = {"README.md", "HACKING.md", "SECURITY.md",
                                                    "recipes/README.md", "examples/README.md"};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "docs")) {
      if (entry.path().extension() == ".md") {
        documents.push_back(std::filesystem::relative(entry.path(), root_));
      }
    }
    std::ranges::sort(documents);
    std::vector<DocumentedLine> lines;
    for (const auto& document : documents) {
      std::ranges::move(lines_of(root_, document), std::back_inserter(lines));
    }
    return lines;
  }

  const std::string kSecret = std::string(32, 's');
  const std::filesystem::path root_ = DISTTF_SOURCE_DIR;
  const std::filesystem::path before_ = std::filesystem::current_path();
  data::test::ScratchDirectory scratch_;
};

TEST_F(DocumentCommands, AreTakenAsTheyStand) {
  const std::vector<DocumentedLine> lines = all_lines();
  constexpr std::size_t kLeast = 60;  // else the lines are not found any more
  EXPECT_GE(lines.size(), kLeast);
  for (const DocumentedLine& line : lines) {
    if (line.text.find(".pem") != std::string::npos) {
      continue;  // certificates are read at once; tests/process/secret_test.cc has such lines
    }
    std::vector<std::string> words = words_of(line.text);
    if (line.text.find("--task_hosts") != std::string::npos) {  // in an environment that says these
      words.insert(words.end(), {"--job_name=worker", "--task_index=0"});
    }
    try {
      static_cast<void>(parse_command_line(
          std::move(words), {{"DISTTF_SECRET", kSecret}, {"CUDA_VISIBLE_DEVICES", "0,1"}}));
    } catch (const std::exception& error) {
      ADD_FAILURE() << line.where << ": disttf " << line.text << "\n  " << error.what();
    }
  }
}

TEST(DocumentCommandsReader, FindsCommandsAndNothingElse) {
  EXPECT_EQ(command_in("$ disttf launch --ps 2   # two of them"), "launch --ps 2");
  EXPECT_EQ(command_in("disttf render compose --ps 1 >a.yaml"), "render compose --ps 1");
  EXPECT_EQ(command_in("disttf launch: [ps:0] was killed"), "");
  EXPECT_EQ(command_in("disttf worker --metrics_port 9400 ..."), "");
  EXPECT_EQ(command_in("kubectl get pods"), "");
  EXPECT_EQ(words_of("a 'b c' --d=\"e f\" ''"),
            (std::vector<std::string>{"a", "b c", "--d=e f", ""}));
}

}  // namespace
}  // namespace disttf
