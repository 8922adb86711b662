#include "net/resolve.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace disttf::net {
namespace {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

// Shared by the caller and the thread that resolves, because either may be the last to leave.
struct Lookup {
  std::string host;
  std::uint16_t port = 0;
  Interrupt done;  // raised by the thread once the result is there
  std::mutex mutex;
  std::error_code error;  // guarded by mutex
  Endpoints endpoints;    // guarded by mutex
};

void look_up(Lookup& lookup) {
  asio::io_context io(1);
  asio::ip::tcp::resolver resolver(io);
  std::error_code error;
  const auto results = resolver.resolve(lookup.host, std::to_string(lookup.port),
                                        asio::ip::resolver_base::numeric_service, error);
  {
    const std::lock_guard lock(lookup.mutex);
    lookup.error = error;
    for (const auto& entry : results) lookup.endpoints.push_back(entry.endpoint());
  }
  lookup.done.interrupt();
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

// Until the look-up is done (no error), the interrupt or the deadline.
std::error_code wait_for(const Lookup& lookup, const Interrupt& interrupt, Deadline deadline) {
  std::array<pollfd, 2> watched{pollfd{lookup.done.fd(), POLLIN, 0},
                                pollfd{interrupt.fd(), POLLIN, 0}};
  while (!lookup.done.interrupted()) {
    if (interrupt.interrupted()) return std::make_error_code(std::errc::operation_canceled);
    if (Clock::now() >= deadline) return std::make_error_code(std::errc::timed_out);
    // EINTR and a deadline beyond the longest wait just go round again.
    static_cast<void>(poll(watched.data(), watched.size(), milliseconds_until(deadline)));
  }
  return {};
}

}  // namespace

std::error_code resolve(const std::string& host, std::uint16_t port, const Interrupt& interrupt,
                        Deadline deadline, Endpoints& out) {
  out.clear();
  std::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    out.emplace_back(address, port);
    return {};
  }
  if (host == "localhost") {
    out.emplace_back(asio::ip::address_v4::loopback(), port);
    out.emplace_back(asio::ip::address_v6::loopback(), port);
    return {};
  }
  const auto lookup = std::make_shared<Lookup>();
  lookup->host = host;
  lookup->port = port;
  try {
    std::thread([lookup] { look_up(*lookup); }).detach();
  } catch (const std::system_error& error) {
    return error.code();  // no more threads
  }
  if (const std::error_code error = wait_for(*lookup, interrupt, deadline)) return error;
  const std::lock_guard lock(lookup->mutex);
  out = lookup->endpoints;
  if (!lookup->error && out.empty()) return asio::error::host_not_found;
  return lookup->error;
}

}  // namespace disttf::net
