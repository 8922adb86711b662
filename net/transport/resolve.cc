#include "net/transport/resolve.h"

#include <poll.h>

#include <memory>
#include <utility>

#include "net/transport/lookup.h"

namespace disttf::net {

using asio::ip::tcp;

std::vector<tcp::endpoint> resolve(const Address& address, const Interrupt& interrupt,
                                   Deadline deadline, std::error_code& error) {
  error.clear();
  if (auto endpoints = known_endpoints(address)) return *std::move(endpoints);
  const std::shared_ptr<Lookup> lookup = start_lookup(address, error);
  if (!lookup) return {};
  error = wait_for(lookup->done.fd(), POLLIN, interrupt, deadline);
  if (error) return {};
  return result_of(*lookup, error);
}

}  // namespace disttf::net
