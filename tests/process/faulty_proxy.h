// A proxy in front of an HTTP server that injects faults: a store that answers 500, breaks off in
// the middle of a response or of a request, or is silent for a while.
//
// One thread for each connection. A request's body has a Content-Length; a response's has one, or
// is chunked.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/file.h"

namespace disttf::test_process {

enum class Fault {
  kNone,
  kError,       // 500, instead of the server's response
  kCutAnswer,   // half of the response's body, then closes
  kLostAnswer,  // the server completes the request, but the client gets no response
  kCutRequest,  // half of the request's body reaches the server, then both connections close
  kDeath,       // the same, and `kill` kills the server
  kAnswer,      // `answer`, instead of the server's response
  kLateAnswer,  // the server's response, after `wait` has returned
};

struct ProxiedRequest {
  std::string first_line;  // "PUT /bucket/key HTTP/1.1"
  std::string head;        // including that line
};

// Parameters of some faults.
struct FaultMeans {
  std::string answer{};          // a complete HTTP response
  std::function<void()> kill{};  // returns once the server has ended
  std::function<void()> wait{};
};

class FaultyProxy {
 public:
  // Selects the fault for a request. Several threads call it at once.
  using Rule = std::function<Fault(const ProxiedRequest&)>;

  // Proxies the server on that port of 127.0.0.1. Throws std::system_error.
  FaultyProxy(std::uint16_t server_port, Rule rule, FaultMeans means = {});
  ~FaultyProxy();
  FaultyProxy(const FaultyProxy&) = delete;
  FaultyProxy& operator=(const FaultyProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // Returns the number of injected faults.
  [[nodiscard]] std::size_t faults() const noexcept { return faults_; }

 private:
  void accept_connections();
  void serve(int client);
  // Returns false if this was the connection's last request.
  bool pass_one(int client, int server);

  const std::uint16_t server_port_;
  const Rule rule_;
  const FaultMeans means_;
  std::uint16_t port_ = 0;
  data::FileDescriptor listener_;
  std::atomic<std::size_t> faults_ = 0;
  std::mutex mutex_;
  std::set<int> sockets_;             // open ones; guarded by mutex_
  std::vector<std::thread> threads_;  // made by the accepting thread; joined after it
  std::thread acceptor_;
};

}  // namespace disttf::test_process
