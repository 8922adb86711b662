// Sends the same request to an HTTP server on this machine repeatedly, on many persistent
// connections, and measures each response time. It runs one thread with epoll, so its own cost is
// the same for all servers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace disttf::bench {

struct HttpLoad {
  std::uint16_t port = 0;
  std::string request;  // complete, head and body
  std::size_t connections = 1;
  std::chrono::milliseconds time{1000};  // measured time, after a warm-up of a tenth of it
};

struct HttpLoadResult {
  double requests_per_second = 0;
  double p50_us = 0;  // from the first byte of a request to the last one of its response
  double p99_us = 0;
};

// Throws std::runtime_error if a response is not 200 with a Content-Length, or a connection ends.
[[nodiscard]] HttpLoadResult run_http_load(const HttpLoad& load);

// Waits for a server to answer and returns the body. Throws std::runtime_error after two minutes.
[[nodiscard]] std::string await_answer(std::uint16_t port, const std::string& request);

}  // namespace disttf::bench
