#include "tests/main/render/scripts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace disttf::render {

Ran run_shell(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("popen failed");
  }
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    ran.output += static_cast<char>(c);
  }
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

bool has_program(const std::string& name) {
  return run_shell("command -v " + name + " >/dev/null").exit_code == 0;
}

ScratchDirectory::ScratchDirectory() {
  path_ = testing::TempDir() + "disttf_render_XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("mkdtemp failed");
  }
}

ScratchDirectory::~ScratchDirectory() { std::filesystem::remove_all(path_); }

std::string ScratchDirectory::write(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::vector<std::string> words_given_to(const std::string& program, const std::string& script,
                                        const std::string& variables) {
  const ScratchDirectory scratch;
  const std::string stand_in = scratch.write(
      "bin/" + program, "#!/bin/sh\nfor word in \"$@\"; do echo \"[word]$word\"; done\n");
  std::filesystem::permissions(stand_in, std::filesystem::perms::owner_all);
  const std::string file = scratch.write("script", script);
  const Ran checked = run_shell("bash -n " + file);
  EXPECT_EQ(checked.exit_code, 0) << checked.output << script;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const Ran ran = run_shell("PATH=" + scratch.path() + "/bin:$PATH " + variables + " " + file);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  std::vector<std::string> words;
  std::istringstream lines(ran.output);
  const std::string mark = "[word]";
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with(mark)) << line;
    words.push_back(line.substr(mark.size()));
  }
  return words;
}

}  // namespace disttf::render
