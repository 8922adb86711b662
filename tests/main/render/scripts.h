// Scripts that were rendered, run: with stand-ins for what they call.
#pragma once

#include <string>
#include <vector>

namespace disttf::render {

// What a shell command printed, and how it ended.
struct Ran {
  int exit_code = -1;
  std::string output;  // both streams
};
[[nodiscard]] Ran run_shell(const std::string& command);

// Whether a program is on the PATH.
[[nodiscard]] bool has_program(const std::string& name);

// A directory of the test's own, removed at its end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Its full path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// Runs `script` by `interpreter` with a stand-in for `program` that prints its words, one a line,
// behind "[NAME]": they are returned. Fails the test when that is not all.
[[nodiscard]] std::vector<std::string> words_given_to(const std::string& program,
                                                      const std::string& script,
                                                      const std::string& variables = {});

}  // namespace disttf::render
