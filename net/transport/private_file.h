// Files that hold secrets, a line each. Their mode is 0600 or 0400, or 0440 where the group is one
// of this process's, as in a pod of Kubernetes with an fsGroup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

struct SecretLines {
  const char* what = "";  // each is called, "secret"
  std::size_t least_bytes = 1;
  std::size_t most_bytes = 1;
  std::size_t most_lines = 1;
  bool must_be_visible = false;  // printable characters of ASCII without blanks
  bool may_be_none = false;
};

// What stands in the lines of `text`, without blanks around it and without empty lines. `source` is
// how a sentence names it. Throws std::invalid_argument, and shows nothing of the text.
[[nodiscard]] std::vector<std::string> secret_lines(std::string_view text,
                                                    const std::string& source,
                                                    const SecretLines& allowed);
// The same of a file. Throws likewise where its mode lets other users read or write it.
[[nodiscard]] std::vector<std::string> secret_lines_of_file(const std::string& path,
                                                            const std::string& source,
                                                            const SecretLines& allowed);

}  // namespace disttf::net
