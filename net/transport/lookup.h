// A name that is being looked up, on threads of its own, since getaddrinfo cannot be interrupted.
// For the two who wait for it: net/transport/resolve.h, net/transport/name_lookup.h.
//
// One getaddrinfo asks for IPv4 and IPv6 addresses and answers when both answers are there. A name
// server that answers one question and drops the other (old appliances; the connection tracking
// race of Kubernetes loses one of two datagrams) makes it last for 20 seconds and more. So a waiter
// that has waited until each_family_at() calls ask_each_family(), and the first of the three
// answers that has an address is the lookup's.
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

#include "net/transport/interrupt.h"
#include "net/wire/address.h"

namespace disttf::net {

enum class Family : std::uint8_t { kBoth, kIpv4, kIpv6 };

// What the threads of a lookup call: getaddrinfo, and something else in tests. Several threads call
// it at once.
using Ask = std::function<std::vector<asio::ip::tcp::endpoint>(const Address&, Family,
                                                               std::error_code& error)>;

// When a waiter that begins now asks for each family: after a second, or half of its time.
[[nodiscard]] inline Deadline each_family_at(Deadline deadline) {
  const Deadline now = Clock::now();
  return now + std::min<Clock::duration>(std::chrono::seconds(1), (deadline - now) / 2);
}

// What the lookup's threads and its waiter share. All hold it, and the last one frees it.
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

// Null, and `error` set, when no descriptor or no thread is to be had. The default `ask` is
// getaddrinfo.
[[nodiscard]] std::shared_ptr<Lookup> start_lookup(const Address& address, std::error_code& error,
                                                   Ask ask = {});

// Asks for the addresses of each family alone, beside the question that is under way. Does nothing
// on a second call, after the lookup's end, or where no thread is to be had.
void ask_each_family(const std::shared_ptr<Lookup>& lookup) noexcept;

// REQUIRES: lookup.done is set.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> result_of(Lookup& lookup,
                                                             std::error_code& error);

// Of numbers and localhost, which need no lookup; nullopt: of any other name.
[[nodiscard]] std::optional<std::vector<asio::ip::tcp::endpoint>> known_endpoints(
    const Address& address);

}  // namespace disttf::net
