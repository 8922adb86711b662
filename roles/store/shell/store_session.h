// What the clients of all stores have in common: connections that stay open, used by several
// threads; the store's clock; how long to wait before another try; small files of settings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_session.h"
#include "net/transport/interrupt.h"

namespace disttf::roles {

[[nodiscard]] std::chrono::sys_seconds system_now();

// Callable from any thread; a request at a time goes over each connection.
class SessionPool {
 public:
  // `interrupt` must outlive the object. `ca_file`: PEM; empty: the system's.
  SessionPool(std::string ca_file, net::ProxySettings proxy, const net::Interrupt& interrupt);

  [[nodiscard]] net::HttpAnswer ask(const net::HttpQuestion& question);

 private:
  const std::string ca_file_;
  const net::ProxySettings proxy_;
  const net::Interrupt& interrupt_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<net::HttpSession>> idle_;  // sessions that nobody uses
};

// The store's, by the field Date of its answers. Callable from any thread.
class StoreClock {
 public:
  void note(std::string_view date);
  [[nodiscard]] bool is_known() const noexcept { return is_known_; }
  [[nodiscard]] std::chrono::sys_seconds now() const;  // ours, as long as it is not known

 private:
  std::atomic<std::int64_t> ahead_s_ = 0;  // before ours, once is_known_
  std::atomic<bool> is_known_ = false;
};

// Whether the answer's error is that of a certificate, which another try does not better.
[[nodiscard]] bool is_certificate_error(const std::error_code& error);

// Before try `next` (the second is 2) of `what`, of which the last one ended so.
void pause_before_try(int next, std::string_view retry_after, const std::string& what,
                      const net::Interrupt& interrupt);

// Empty: it cannot be read.
[[nodiscard]] std::string small_file(const std::string& path);

}  // namespace disttf::roles
