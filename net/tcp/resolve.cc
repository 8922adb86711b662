#include "net/tcp/resolve.h"

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <utility>
namespace disttf::net {

using asio::ip::tcp;

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

}  // namespace disttf::net
