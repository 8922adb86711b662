#include "net/transport/lookup.h"

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace disttf::net {

using asio::ip::tcp;

namespace {

std::vector<tcp::endpoint> ask_system(const Address& address, std::error_code& error) {
  asio::io_context context;
  tcp::resolver resolver(context);
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : resolver.resolve(address.host, std::to_string(address.port),
                                            tcp::resolver::numeric_service, error)) {
    endpoints.push_back(entry.endpoint());
  }
  return endpoints;
}

// Whatever goes wrong is the lookup's result: nobody catches what this thread throws.
void run_lookup(const std::shared_ptr<Lookup>& lookup) {
  std::vector<tcp::endpoint> endpoints;
  std::error_code error;
  try {
    endpoints = ask_system(lookup->address, error);
  } catch (const std::system_error& failure) {
    error = failure.code();
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  {
    const std::lock_guard lock(lookup->mutex);
    lookup->error = error;
    lookup->endpoints = std::move(endpoints);
  }
  lookup->done.interrupt();
}

}  // namespace

std::shared_ptr<Lookup> start_lookup(const Address& address, std::error_code& error) {
  try {
    auto lookup = std::make_shared<Lookup>(address);
    std::thread([lookup] { run_lookup(lookup); }).detach();
    return lookup;
  } catch (const std::system_error& failure) {
    error = failure.code();
    return nullptr;
  }
}

std::vector<tcp::endpoint> result_of(Lookup& lookup, std::error_code& error) {
  const std::lock_guard lock(lookup.mutex);
  error = lookup.error;
  if (!error && lookup.endpoints.empty()) error = asio::error::host_not_found;
  return lookup.endpoints;
}

std::optional<std::vector<tcp::endpoint>> known_endpoints(const Address& address) {
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
