// co_await something(kAsTuple): returns the error first instead of throwing it.
#pragma once

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

namespace disttf::net {

inline constexpr auto kAsTuple = asio::experimental::as_tuple(asio::use_awaitable);

}  // namespace disttf::net
