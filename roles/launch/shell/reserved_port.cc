#include "roles/launch/shell/reserved_port.h"

#include <fcntl.h>

#include <system_error>

#include "net/tcp/sockets.h"

namespace disttf::roles {

using asio::ip::tcp;

ReservedPort::ReservedPort(asio::io_context& context) : context_(&context), bound_(context) {
  std::error_code error;
  bound_.open(tcp::v4(), error);
  if (!error) {
    fcntl(bound_.native_handle(), F_SETFD, FD_CLOEXEC);  // a child would keep the port otherwise
    // So that listen_on() can bind the port again while this socket is bound but does not listen.
    bound_.set_option(asio::socket_base::reuse_address(true), error);
  }
  if (!error) {
    bound_.bind({asio::ip::address_v4::loopback(), 0}, error);
  }
  if (error) {
    throw std::system_error(error, "cannot reserve a port of 127.0.0.1");
  }
  number_ = bound_.local_endpoint().port();
}

net::Address ReservedPort::address() const { return {.host = "127.0.0.1", .port = number_}; }

tcp::acceptor ReservedPort::listen() {
  // Each process gets a listening socket of its own. The bound one here keeps the number reserved
  // while no process lives.
  return net::listen_on(*context_, number_, net::ListenScope::kLoopback);
}

}  // namespace disttf::roles
