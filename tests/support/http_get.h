// Sends one request to an http server on 127.0.0.1 and returns the complete, raw response.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tests/net/raw_http_client.h"

namespace disttf::test_support {

// `request`: the complete request. Returns an empty text if no server listens or answers.
inline std::string http_ask(std::uint16_t port, const std::string& request) {
  try {
    return net::test::RawClient(port).write(request).read();
  } catch (const std::runtime_error&) {
    return {};
  }
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
