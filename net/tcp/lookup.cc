#include "net/tcp/lookup.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "net/waiting/as_tuple.h"
#include "net/waiting/descriptor.h"

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

std::vector<tcp::endpoint> resolve(const Address& address, const Interrupt& interrupt,
                                   Deadline deadline, std::error_code& error, Ask ask) {
  error.clear();
  if (auto endpoints = known_endpoints(address)) return *std::move(endpoints);
  const std::shared_ptr<Lookup> lookup = start_lookup(address, error, std::move(ask));
  if (!lookup) return {};
  error = wait_for(lookup->done.fd(), POLLIN, interrupt, each_family_at(deadline));
  if (error == std::errc::timed_out) {
    ask_each_family(lookup);
    error = wait_for(lookup->done.fd(), POLLIN, interrupt, deadline);
  }
  // The lookup's threads share its ownership. They end on their own after a timeout or an
  // interrupt.
  if (error) return {};
  return result_of(*lookup, error);
}

std::string endpoint_text(const asio::ip::tcp::endpoint& endpoint) {
  // A dual-stack listener reports an IPv4 peer as ::ffff:a.b.c.d; users recognise the IPv4 form.
  asio::ip::address host = endpoint.address();
  if (host.is_v6() && host.to_v6().is_v4_mapped()) {
    host = asio::ip::make_address_v4(asio::ip::v4_mapped, host.to_v6());
  }
  return to_string(Address{host.to_string(), endpoint.port()});
}

std::string peer_endpoint_text(int socket) {
  asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (::getpeername(socket, endpoint.data(), &size) != 0) return "a peer that has gone";
  endpoint.resize(size);
  return endpoint_text(endpoint);
}

namespace {

// Waits until the descriptor is readable or the deadline has come. The descriptor is shared with
// the timer's handler, which may be queued already when the wait ends.
asio::awaitable<std::error_code> readable(asio::any_io_executor executor, int fd,
                                          Deadline deadline) {
  const auto descriptor = std::make_shared<asio::posix::stream_descriptor>(executor);
  std::error_code error;
  descriptor->assign(fd, error);
  if (error) {
    ::close(fd);
    co_return error;
  }
  asio::steady_timer timer(executor, deadline);
  timer.async_wait([descriptor](std::error_code stopped) {
    std::error_code ignored;
    if (!stopped) descriptor->cancel(ignored);
  });
  // The timer is what cancels this wait, so an error means that the deadline has come.
  std::tie(error) =
      co_await descriptor->async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  co_return error ? std::make_error_code(std::errc::timed_out) : error;
}

}  // namespace

asio::awaitable<std::vector<tcp::endpoint>> NameLookup::resolve(asio::any_io_executor executor,
                                                                Address address, Deadline deadline,
                                                                std::error_code& error) {
  error.clear();
  if (auto endpoints = known_endpoints(address)) co_return *std::move(endpoints);
  // A lookup that outlived an earlier call's deadline is joined and not started again: threads that
  // are stuck in the resolver cannot be cancelled and would accumulate.
  if (!pending_ || pending_->address != address) pending_ = start_lookup(address, error, ask_);
  if (!pending_) co_return std::vector<tcp::endpoint>{};
  // A copy, because asio closes the descriptor that it is assigned, and the lookup's threads still
  // use the original.
  int fd = copy_of(pending_->done.fd()).release();
  error = fd < 0 ? last_error() : co_await readable(executor, fd, each_family_at(deadline));
  if (error == std::errc::timed_out) {
    ask_each_family(pending_);
    fd = copy_of(pending_->done.fd()).release();
    error = fd < 0 ? last_error() : co_await readable(executor, fd, deadline);
  }
  // The lookup stays pending for the next call.
  if (error) co_return std::vector<tcp::endpoint>{};
  co_return result_of(*std::exchange(pending_, nullptr), error);
}

}  // namespace disttf::net
