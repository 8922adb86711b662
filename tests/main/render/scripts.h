// Runs rendered scripts, with stubs for the programs that they call.
#pragma once

#include <string>
#include <vector>

namespace disttf::render {

// A shell command's output and exit status.
struct Ran {
  int exit_code = -1;
  std::string output;  // both streams
};
[[nodiscard]] Ran run_shell(const std::string& command);

// Returns whether a program is on the PATH.
[[nodiscard]] bool has_program(const std::string& name);

// A directory of the test, removed at its end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Writes a file and returns its full path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// Runs `script` by `interpreter` with a stub for `program` that prints its arguments, one per line,
// after "[NAME]", and returns these. Fails the test on any other output.
[[nodiscard]] std::vector<std::string> words_given_to(const std::string& program,
                                                      const std::string& script,
                                                      const std::string& variables = {});

}  // namespace disttf::render
