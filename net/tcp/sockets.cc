#include "net/tcp/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/error.hpp>
#include <asio/ip/v6_only.hpp>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace disttf::net {
namespace {

using asio::ip::tcp;

// A socket error with the operation in front.
[[nodiscard]] std::system_error listen_error(std::error_code error, const std::string& what) {
  return {error, "cannot listen on " + what};
}

[[nodiscard]] std::error_code open_and_listen(tcp::acceptor& acceptor,
                                              const tcp::endpoint& endpoint) {
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  // A child process must not hold the port. `launch` clears this flag to pass a socket on.
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  // A port of a run that has just ended can be bound again at once.
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (is_loopback(endpoint.address())) send_unpaced(acceptor.native_handle());
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

}  // namespace

tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port, ListenScope scope) {
  const std::string what = "port " + std::to_string(port);
  tcp::acceptor acceptor(context);
  if (scope == ListenScope::kLoopback) {
    const auto error = open_and_listen(acceptor, {asio::ip::address_v4::loopback(), port});
    if (error) throw listen_error(error, "127.0.0.1 " + what);
    return acceptor;
  }
  auto error = open_and_listen(acceptor, {tcp::v6(), port});
  if (error && error != asio::error::address_in_use && error != asio::error::access_denied) {
    // For the two causes above, a second attempt over IPv4 would only hide the reason.
    // No IPv6 on this machine, or no dual-stack sockets.
    acceptor = tcp::acceptor(context);
    error = open_and_listen(acceptor, {tcp::v4(), port});
  }
  if (error) throw listen_error(error, what);
  return acceptor;
}

tcp::acceptor listen_at(asio::io_context& context, const std::string& host, std::uint16_t port) {
  if (host == kEveryAddress) return listen_on(context, port);
  tcp::acceptor acceptor(context);
  const auto error = open_and_listen(acceptor, {asio::ip::make_address(host), port});
  if (error) throw listen_error(error, host + " port " + std::to_string(port));
  return acceptor;
}

tcp::acceptor listen_as(asio::io_context& context, const Address& listed) {
  if (!is_loopback_host(listed.host)) return listen_on(context, listed.port);
  return listen_at(context, listed.host == "localhost" ? "127.0.0.1" : listed.host, listed.port);
}

tcp::acceptor adopt_listening(asio::io_context& context, int fd) {
  const std::string what = "inherited descriptor " + std::to_string(fd);
  // The number comes from another process. Any other descriptor would fail only at the first
  // accept().
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    const std::error_code error(errno, std::system_category());
    ::close(fd);
    throw listen_error(listening == 0 && !error ? asio::error::invalid_argument : error, what);
  }
  sockaddr_storage address{};
  size = sizeof address;
  std::error_code error;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
    ::close(fd);
    throw listen_error(std::make_error_code(std::errc::address_family_not_supported), what);
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  tcp::acceptor acceptor(context);
  acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd, error);
  if (error) {
    ::close(fd);
    throw listen_error(error, what);
  }
  if (is_loopback(acceptor.local_endpoint(error).address())) send_unpaced(fd);
  return acceptor;
}

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
