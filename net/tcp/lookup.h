// Name resolution with a deadline that holds: blocking, and inside an event loop. A lookup runs on
// threads of its own, because getaddrinfo cannot be interrupted.
//
// One getaddrinfo asks for IPv4 and IPv6 addresses and returns when both answers are there. If a
// name server answers one query and drops the other, it takes 20 seconds and more. (Old appliances
// do that; the connection tracking race of Kubernetes loses one of two datagrams.) Therefore a
// waiter that has waited until each_family_at() calls ask_each_family(). The first of the three
// answers that has an address becomes the result.
#pragma once

#include <algorithm>
#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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

// Returns every endpoint of the address, in the resolver's order. Looks the name up on each call,
// because a restarted task may have a new address. Numeric hosts and "localhost" (127.0.0.1, then
// ::1) need no resolver and no file. Any other name needs a detached thread, because getaddrinfo
// cannot be interrupted. At the deadline or the interrupt the thread is left behind with its own
// data and ends when the resolver returns (glibc: within about half a minute). If the answer for
// one address family is missing, the other one's is used after a second. `ask`
// replaces getaddrinfo in tests.
// Empty, and `error` set, when there is none. Callable from any thread.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> resolve(const Address& address,
                                                           const Interrupt& interrupt,
                                                           Deadline deadline,
                                                           std::error_code& error, Ask ask = {});

// "10.0.0.7:51312", "[fe80::1]:51312". An IPv4 address that is mapped into IPv6 is written as IPv4.
[[nodiscard]] std::string endpoint_text(const asio::ip::tcp::endpoint& endpoint);
// The text of the other end of this connection, or "a peer that has gone".
[[nodiscard]] std::string peer_endpoint_text(int socket);

// Name resolution inside an event loop, without blocking it. A lookup that outlasts its caller is
// reused by the next call. So at most one thread is left behind, however often a resolver that
// does not answer is queried.
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
