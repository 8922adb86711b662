#include "net/tcp/drain_all.h"

namespace disttf::net {

asio::awaitable<void> drain_all(std::vector<std::shared_ptr<ServerConnection>> connections,
                                std::chrono::milliseconds timeout) {
  using std::chrono::steady_clock;
  const steady_clock::time_point until = steady_clock::now() + timeout;
  for (const auto& connection : connections) {
    // A limit in the past ends the wait at once.
    co_await connection->drained(
        std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()));
  }
}

}  // namespace disttf::net
