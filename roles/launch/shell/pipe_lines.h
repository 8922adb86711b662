// Reads the output of a child, line by line.
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string_view>

#include "data/file.h"

namespace disttf::roles {

using LineHandler = std::function<void(std::string_view)>;  // without the line's end

// While it returns true nothing is read: the writer of the pipe blocks when that is full.
using LinesPaused = std::function<bool()>;

// Reads the pipe to its end. Splits lines of more than 64 KiB. The last line may lack its end: the
// writer may have died in the middle of it.
asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler,
                                 LinesPaused is_paused = {});

}  // namespace disttf::roles
