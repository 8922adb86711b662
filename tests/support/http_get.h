// What an http server on 127.0.0.1 answers to one request, whole, as it came.
#pragma once

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <cstdint>
#include <string>
#include <system_error>

namespace disttf::test_support {

// `request`: all of it. Empty: nobody listens there, or says anything.
inline std::string http_ask(std::uint16_t port, const std::string& request) {
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  std::error_code error;
  socket.connect({asio::ip::address_v4::loopback(), port}, error);
  if (!error) {
    asio::write(socket, asio::buffer(request), error);
  }
  std::string text;
  if (!error) {
    asio::read(socket, asio::dynamic_buffer(text), error);  // to its end
  }
  return text;
}

// The answer to GET, with its head.
inline std::string http_get(std::uint16_t port, const std::string& target,
                            const std::string& headers = {}) {
  return http_ask(port, "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
}

// What is behind the head.
inline std::string http_body(const std::string& reply) {
  const std::size_t end = reply.find("\r\n\r\n");
  return end == std::string::npos ? std::string() : reply.substr(end + 4);
}

}  // namespace disttf::test_support
