#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "net/tcp/frame_connection.h"
#include "net/waiting/interrupt.h"

namespace disttf::net {

// Waits until the kernel has all queued frames of these connections, or they have closed; at most
// until `timeout` has passed, however many connections there are. They send side by side, so one
// limit is enough for all. `now` returns the time.
asio::awaitable<void> drain_all(std::vector<std::shared_ptr<FrameConnection>> connections,
                                std::chrono::milliseconds timeout,
                                std::function<Clock::time_point()> now = Clock::now);

}  // namespace disttf::net
