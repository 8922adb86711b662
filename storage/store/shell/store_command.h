// `disttf ls` and `disttf cp`: lists and copies files of stores and of this machine. Results go to
// standard output.
#pragma once

#include <cstddef>
#include <string>

namespace disttf::roles {

struct ListCommand {
  std::string place;
  bool as_json = false;
};

struct CopyCommand {
  std::string from;
  std::string to;
  std::size_t threads = 4;  // files copied at once
};

// Returns kDone. Throws Failure: kUsage if the place does not exist, kBadData if it cannot be read
// or written.
[[nodiscard]] int run_list_command(const ListCommand& command);
// Copies a directory recursively, as `cp -r` does: into `to` if that is a directory, else as `to`.
// A file appears when it is complete.
[[nodiscard]] int run_copy_command(const CopyCommand& command);

}  // namespace disttf::roles
