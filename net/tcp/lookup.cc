#include "net/tcp/lookup.h"

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace disttf::net {

using asio::ip::tcp;

namespace {

// getaddrinfo() has no time limit and cannot be cancelled, so it runs in threads of its own.
std::vector<tcp::endpoint> ask_system(const Address& address, Family family,
                                      std::error_code& error) {
  // The resolver needs a context as its owner. This one is never run.
  asio::io_context context;
  tcp::resolver resolver(context);
  std::vector<tcp::endpoint> endpoints;
  const auto add = [&](const tcp::resolver::results_type& entries) {
    for (const auto& entry : entries) endpoints.push_back(entry.endpoint());
  };
  const std::string port = std::to_string(address.port);
  if (family == Family::kBoth) {
    add(resolver.resolve(address.host, port, tcp::resolver::numeric_service, error));
  } else {
    add(resolver.resolve(family == Family::kIpv4 ? tcp::v4() : tcp::v6(), address.host, port,
                         tcp::resolver::numeric_service, error));
  }
  return endpoints;
}

// Stores the answer if it is the first one with an address, or the last one of all.
void take_answer(Lookup& lookup, Family family, std::vector<tcp::endpoint> endpoints,
                 std::error_code error) {
  {
    const std::lock_guard lock(lookup.mutex);
    --lookup.running;
    if (!lookup.endpoints.empty()) return;
    // The query for both families explains best why there is no address.
    if (family == Family::kBoth || !endpoints.empty()) lookup.error = error;
    if (endpoints.empty() && lookup.running > 0) return;
    lookup.endpoints = std::move(endpoints);
  }
  // After the lock is released, because the woken thread takes it next.
  lookup.done.interrupt();
}

// Any failure becomes the lookup's result: an exception would end the process.
void run_lookup(const std::shared_ptr<Lookup>& lookup, Family family) {
  std::vector<tcp::endpoint> endpoints;
  std::error_code error;
  try {
    endpoints = lookup->ask(lookup->address, family, error);
  } catch (const std::system_error& failure) {
    error = failure.code();
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  take_answer(*lookup, family, std::move(endpoints), error);
}

}  // namespace

// The threads are detached and share ownership of the lookup: a caller whose time is over must not
// wait for them.
std::shared_ptr<Lookup> start_lookup(const Address& address, std::error_code& error, Ask ask) {
  try {
    auto lookup = std::make_shared<Lookup>(address, ask ? std::move(ask) : Ask(ask_system));
    lookup->running = 1;
    std::thread([lookup] { run_lookup(lookup, Family::kBoth); }).detach();
    return lookup;
  } catch (const std::system_error& failure) {
    error = failure.code();
    return nullptr;
  }
}

// A name server that drops queries of one family lets the query for both wait for its timeout.
// Separate queries return the family that works.
void ask_each_family(const std::shared_ptr<Lookup>& lookup) noexcept {
  {
    const std::lock_guard lock(lookup->mutex);
    if (lookup->asks_each_family || lookup->running == 0 || !lookup->endpoints.empty()) return;
    lookup->asks_each_family = true;
    // Counted before the threads start: otherwise the query for both families could end as the last
    // one and report a failure too early.
    lookup->running += 2;
  }
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    try {
      std::thread([lookup, family] { run_lookup(lookup, family); }).detach();
    } catch (const std::exception&) {  // no thread, no memory
      // A query that cannot start counts as one without an answer, so that `running` reaches 0.
      take_answer(*lookup, family, {}, {});
    }
  }
}

std::vector<tcp::endpoint> result_of(Lookup& lookup, std::error_code& error) {
  const std::lock_guard lock(lookup.mutex);
  error = lookup.error;
  if (!error && lookup.endpoints.empty()) error = asio::error::host_not_found;
  return lookup.endpoints;
}

std::optional<std::vector<tcp::endpoint>> known_endpoints(const Address& address) {
  // Without a query, so that a broken resolver does not affect tasks of one machine.
  if (address.host == "localhost") {
    return {{{asio::ip::address_v4::loopback(), address.port},
             {asio::ip::address_v6::loopback(), address.port}}};
  }
  std::error_code not_numeric;
  const auto numeric = asio::ip::make_address(address.host, not_numeric);
  if (not_numeric) return std::nullopt;
  return {{{numeric, address.port}}};
}

}  // namespace disttf::net
