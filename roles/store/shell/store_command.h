// `disttf ls` and `disttf cp`: a look at what lies in a store, or on this machine, and a copy of it
// to the other. Results go to standard output.
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
  std::size_t threads = 4;  // files that are copied at once
};

// kDone. Throws Failure: kUsage where there is nothing at the place, kBadData where it cannot be
// read or written.
[[nodiscard]] int run_list_command(const ListCommand& command);
// A directory is copied with all that is in it, as `cp -r` does: into `to` where that is a
// directory, else as `to`. Each file is there whole or not at all.
[[nodiscard]] int run_copy_command(const CopyCommand& command);

}  // namespace disttf::roles
