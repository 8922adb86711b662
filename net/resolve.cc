#include "net/resolve.h"

#include <poll.h>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace disttf::net {
namespace {

using asio::ip::tcp;

// What a lookup's thread and its caller share. Both hold it, and whichever goes last frees it.
struct Lookup {
  explicit Lookup(Address wanted) : address(std::move(wanted)) {}

  const Address address;
  Interrupt done;  // set by the thread when the result is there
  std::mutex mutex;
  std::vector<tcp::endpoint> endpoints;  // guarded by mutex
  std::error_code error;                 // guarded by mutex
};

void run_lookup(const std::shared_ptr<Lookup>& lookup) {
  asio::io_context context;
  tcp::resolver resolver(context);
  std::error_code error;
  const auto found = resolver.resolve(lookup->address.host, std::to_string(lookup->address.port),
                                      tcp::resolver::numeric_service, error);
  {
    const std::lock_guard lock(lookup->mutex);
    lookup->error = error;
    for (const auto& entry : found) lookup->endpoints.push_back(entry.endpoint());
  }
  lookup->done.interrupt();
}

[[nodiscard]] std::vector<tcp::endpoint> look_up(const Address& address, const Interrupt& interrupt,
                                                 Deadline deadline, std::error_code& error) {
  std::shared_ptr<Lookup> lookup;
  try {
    lookup = std::make_shared<Lookup>(address);
    std::thread([lookup] { run_lookup(lookup); }).detach();
  } catch (const std::system_error& failure) {  // no descriptor or no thread to be had
    error = failure.code();
    return {};
  }
  error = wait_for(lookup->done.fd(), POLLIN, interrupt, deadline);
  if (error) return {};
  const std::lock_guard lock(lookup->mutex);
  error = lookup->error;
  if (!error && lookup->endpoints.empty()) error = asio::error::host_not_found;
  return lookup->endpoints;
}

}  // namespace

std::vector<tcp::endpoint> resolve(const Address& address, const Interrupt& interrupt,
                                   Deadline deadline, std::error_code& error) {
  error.clear();
  if (address.host == "localhost") {
    return {{asio::ip::address_v4::loopback(), address.port},
            {asio::ip::address_v6::loopback(), address.port}};
  }
  std::error_code not_numeric;
  const auto numeric = asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) return {{numeric, address.port}};
  return look_up(address, interrupt, deadline, error);
}

}  // namespace disttf::net
