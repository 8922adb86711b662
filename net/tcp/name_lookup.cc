#include "net/tcp/name_lookup.h"

#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <tuple>
#include <utility>

#include "net/waiting/as_tuple.h"
#include "net/waiting/descriptor.h"
#include "net/waiting/last_error.h"

namespace disttf::net {

using asio::ip::tcp;

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
