// A name lookup that runs on threads of its own, because getaddrinfo cannot be interrupted. Used by
// net/tcp/resolve.h and net/tcp/name_lookup.h.
//
// One getaddrinfo asks for IPv4 and IPv6 addresses and returns when both answers are there. If a
// name server answers one query and drops the other, it takes 20 seconds and more. (Old appliances
// do that; the connection tracking race of Kubernetes loses one of two datagrams.) Therefore a
// waiter that has waited until each_family_at() calls ask_each_family(). The first of the three
// answers that has an address becomes the result.
#pragma once

#include <algorithm>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "net/waiting/interrupt.h"
#include "net/wire/address.h"

namespace disttf::net {

enum class Family : std::uint8_t { kBoth, kIpv4, kIpv6 };

// The function that the threads of a lookup call: getaddrinfo, or a substitute in tests. Several
// threads call it at once.
using Ask = std::function<std::vector<asio::ip::tcp::endpoint>(const Address&, Family,
                                                               std::error_code& error)>;

// When a waiter that begins now should query each family: after a second, or after half of its
// time.
[[nodiscard]] inline Deadline each_family_at(Deadline deadline) {
  const Deadline now = Clock::now();
  return now + std::min<Clock::duration>(std::chrono::seconds(1), (deadline - now) / 2);
}

// State that the lookup's threads and its waiter share. The last one to release it frees it.
struct Lookup {
  Lookup(Address wanted, Ask how) : address(std::move(wanted)), ask(std::move(how)) {}

  const Address address;
  const Ask ask;
  Interrupt done;  // set by a thread when the result is there
  std::mutex mutex;
  std::vector<asio::ip::tcp::endpoint> endpoints;  // guarded by mutex
  std::error_code error;                           // guarded by mutex
  int running = 0;                                 // guarded by mutex; threads without an answer
  bool asks_each_family = false;                   // guarded by mutex
};

// Returns nullptr, and sets `error`, when no descriptor or no thread is available. The default
// `ask` is getaddrinfo.
[[nodiscard]] std::shared_ptr<Lookup> start_lookup(const Address& address, std::error_code& error,
                                                   Ask ask = {});

// Queries the addresses of each family separately, beside the query that is under way. Does nothing
// on a second call, after the lookup's end, or where no thread is available.
void ask_each_family(const std::shared_ptr<Lookup>& lookup) noexcept;

// REQUIRES: lookup.done is set.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> result_of(Lookup& lookup,
                                                             std::error_code& error);

// Endpoints of numeric addresses and localhost, which need no lookup; nullopt for any other name.
[[nodiscard]] std::optional<std::vector<asio::ip::tcp::endpoint>> known_endpoints(
    const Address& address);

}  // namespace disttf::net
