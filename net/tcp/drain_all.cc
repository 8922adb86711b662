#include "net/tcp/drain_all.h"

namespace disttf::net {

asio::awaitable<void> drain_all(std::vector<std::shared_ptr<FrameConnection>> connections,
                                std::chrono::milliseconds timeout,
                                std::function<Clock::time_point()> now) {
  const Clock::time_point until = now() + timeout;
  for (const auto& connection : connections) {
    // A limit in the past ends the wait at once.
    co_await connection->drained(std::chrono::ceil<std::chrono::milliseconds>(until - now()));
  }
}

}  // namespace disttf::net
