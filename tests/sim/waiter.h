// Coroutines of a simulated process that wait until something happens.
#pragma once

#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace disttf::sim {

class Waiter {
 public:
  explicit Waiter(asio::io_context& context) : context_(context) {}

  // Returns once wake() has been called.
  [[nodiscard]] asio::awaitable<void> wait() {
    const asio::use_awaitable_t<> token;
    return asio::async_initiate<const asio::use_awaitable_t<>, void()>(
        [this](auto handler) {
          const auto shared = std::make_shared<decltype(handler)>(std::move(handler));
          waiting_.emplace_back([shared] { std::move (*shared)(); });
        },
        token);
  }
  // All that wait go on when the context runs.
  void wake() {
    for (std::function<void()>& each : std::exchange(waiting_, {})) {
      asio::post(context_, std::move(each));
    }
  }
  [[nodiscard]] bool has_any() const noexcept { return !waiting_.empty(); }
  // Those that wait never go on: their coroutines are destroyed.
  void drop() { std::exchange(waiting_, {}).clear(); }

 private:
  asio::io_context& context_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace disttf::sim
