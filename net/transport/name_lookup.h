// Names to endpoints inside an event loop, which goes on meanwhile. See net/transport/resolve.h for
// what is looked up, and how.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "net/transport/interrupt.h"
#include "net/transport/lookup.h"
#include "net/wire/address.h"

namespace disttf::net {

// A lookup that lasts longer than its caller waits is the next caller's: there is one left-behind
// thread at most, however often a resolver that does not answer is asked.
//
// On the thread that runs the loop. Neither this object nor the loop waits for a lookup when it
// goes.
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
