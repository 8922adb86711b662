#include "net/tcp/same_host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string_view>

namespace disttf::net {

bool is_loopback(const asio::ip::address& address) noexcept {
  // Asio does not count ::ffff:127.0.0.0/104 as loopback. Byte 12 is the first one of the IPv4
  // address.
  return address.is_loopback() || (address.is_v6() && address.to_v6().is_v4_mapped() &&
                                   address.to_v6().to_bytes()[12] == 127);
}

bool is_loopback_host(std::string_view host) noexcept {
  std::error_code not_numeric;
  const auto numeric = asio::ip::make_address(host, not_numeric);
  return not_numeric ? host == "localhost" : is_loopback(numeric);
}

void send_unpaced(int socket) noexcept {
  constexpr std::string_view kReno = "reno";
  static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kReno.data(),
                                 static_cast<socklen_t>(kReno.size())));
}

}  // namespace disttf::net
