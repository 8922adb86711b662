// Files that hold secrets, one a line. Their mode must be 0600 or 0400, or 0440 if the group is one
// of this process's, as in a Kubernetes pod with an fsGroup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

struct SecretLines {
  const char* what = "";  // the noun for messages: "secret"
  std::size_t least_bytes = 1;
  std::size_t most_bytes = 1;
  std::size_t most_lines = 1;
  bool must_be_visible = false;  // printable ASCII characters without blanks
  bool may_be_none = false;
};

// Returns the lines of `text` without surrounding blanks and without empty lines. `source` names
// the text in messages. Throws std::invalid_argument, and never shows any of the text.
[[nodiscard]] std::vector<std::string> secret_lines(std::string_view text,
                                                    const std::string& source,
                                                    const SecretLines& allowed);
// The same for a file. Also throws if its mode lets other users read or write it.
[[nodiscard]] std::vector<std::string> secret_lines_of_file(const std::string& path,
                                                            const std::string& source,
                                                            const SecretLines& allowed);

}  // namespace disttf::net
