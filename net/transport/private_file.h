// Files that hold secrets: of their owner alone.
#pragma once

#include <cstddef>
#include <string>

#include "net/transport/file_seen.h"

namespace disttf::net {

// All of a file that nobody but its owner may read or write, and what was seen of it. `source` is
// how a sentence names it, "--secret_file \"x\"". Throws std::invalid_argument, also where it is
// not a regular file, or has more than `most` bytes.
[[nodiscard]] std::string read_private_file(const std::string& path, const std::string& source,
                                            std::size_t most, FileSeen& seen);

}  // namespace disttf::net
