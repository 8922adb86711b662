// Name resolution inside an event loop, without blocking it. See net/tcp/resolve.h for what
// is looked up.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "net/tcp/lookup.h"
#include "net/waiting/interrupt.h"
#include "net/wire/address.h"

namespace disttf::net {

// A lookup that outlasts its caller is reused by the next call. So at most one thread is left
// behind, however often an unresponsive resolver is asked.
//
// Use on the thread that runs the loop. The destructors of this object and of the loop do not wait
// for a lookup.
class NameLookup {
 public:
  // `ask` replaces getaddrinfo in tests.
  explicit NameLookup(Ask ask = {}) : ask_(std::move(ask)) {}

  // At most one call at a time. REQUIRES: this object outlives the call.
  [[nodiscard]] asio::awaitable<std::vector<asio::ip::tcp::endpoint>> resolve(
      asio::any_io_executor executor, Address address, Deadline deadline, std::error_code& error);

 private:
  Ask ask_;
  std::shared_ptr<Lookup> pending_;  // null: none is under way
};

}  // namespace disttf::net
