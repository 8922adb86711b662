// A name that is being looked up, on a thread of its own, since getaddrinfo cannot be interrupted.
// For the two who wait for it: net/transport/resolve.h, net/transport/name_lookup.h.
#pragma once

#include <asio/ip/tcp.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "net/transport/interrupt.h"
#include "net/wire/address.h"

namespace disttf::net {

// What the lookup's thread and whoever waits for it share. Both hold it, and whichever goes last
// frees it.
struct Lookup {
  explicit Lookup(Address wanted) : address(std::move(wanted)) {}

  const Address address;
  Interrupt done;  // set by the thread when the result is there
  std::mutex mutex;
  std::vector<asio::ip::tcp::endpoint> endpoints;  // guarded by mutex
  std::error_code error;                           // guarded by mutex
};

// Null, and `error` set, when no descriptor or no thread is to be had.
[[nodiscard]] std::shared_ptr<Lookup> start_lookup(const Address& address, std::error_code& error);

// REQUIRES: lookup.done is set.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> result_of(Lookup& lookup,
                                                             std::error_code& error);

// Of numbers and localhost, which need no lookup; nullopt: of any other name.
[[nodiscard]] std::optional<std::vector<asio::ip::tcp::endpoint>> known_endpoints(
    const Address& address);

}  // namespace disttf::net
