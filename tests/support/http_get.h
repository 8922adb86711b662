// Sends one request to an http server on 127.0.0.1 and returns the complete, raw response.
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

// `request`: the complete request. Returns an empty text if no server listens or answers.
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
    asio::read(socket, asio::dynamic_buffer(text), error);  // to the end of the connection
  }
  return text;
}

// Returns the response to GET, with its head.
inline std::string http_get(std::uint16_t port, const std::string& target,
                            const std::string& headers = {}) {
  return http_ask(port, "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
}

// Returns the part of the response after the head.
inline std::string http_body(const std::string& reply) {
  const std::size_t end = reply.find("\r\n\r\n");
  return end == std::string::npos ? std::string() : reply.substr(end + 4);
}

}  // namespace disttf::test_support
