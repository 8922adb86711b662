// What a child prints, line by line.
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string_view>

#include "data/file.h"

namespace disttf::roles {

using LineHandler = std::function<void(std::string_view)>;  // without the line's end

// No more is read while it returns true: the writer of the pipe then waits when that is full.
using LinesPaused = std::function<bool()>;

// Reads the pipe to its end. A line of more than 64 KiB is handed over in several parts; the last
// one need not have an end: its writer may have died in the middle of it.
asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler,
                                 LinesPaused is_paused = {});

}  // namespace disttf::roles
