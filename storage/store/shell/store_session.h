// What the clients of all stores share: persistent connections for several threads, the store's
// clock, the delays between tries, and small files of settings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_session.h"
#include "net/waiting/interrupt.h"
#include "storage/store/core/store_answers.h"

namespace disttf::roles {

[[nodiscard]] std::chrono::sys_seconds system_now();

// How long a store may take to answer a request that processes so many stored bytes: two minutes
// and a second per 4 MB, at most ten minutes. AWS can take minutes to compose an object of many
// parts, while its own client allows 60 s for any request. An emulator reads all the bytes: on two
// processors with ten times the work it took 63 s for 512 MB, and more than two minutes for 960 MB.
// A longer timeout would delay a save three times over when the store has disappeared.
[[nodiscard]] std::chrono::seconds work_patience(std::uint64_t bytes = 0);

// Callable from any thread; each connection carries one request at a time.
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
  std::vector<std::unique_ptr<net::HttpSession>> idle_;  // unused sessions
};

// The store's clock, from the field Date of its answers. Callable from any thread.
class StoreClock {
 public:
  void note(std::string_view date);
  [[nodiscard]] bool is_known() const noexcept { return is_known_; }
  [[nodiscard]] std::chrono::sys_seconds now() const;  // the local clock until it is known

 private:
  std::atomic<std::int64_t> ahead_s_ = 0;  // of the local clock, once is_known_
  std::atomic<bool> is_known_ = false;
};

// Whether the error is about a certificate, so that a retry does not help.
[[nodiscard]] bool is_certificate_error(const std::error_code& error);

// Why a request failed: "Connection refused", "it answered 403 (Forbidden)".
[[nodiscard]] std::string failure_text(const net::HttpAnswer& answer);

// The refusal for a request that got no answer.
[[nodiscard]] StoreRefusal refusal_of_error(const net::HttpAnswer& answer);

// A request with retries.
struct RetriedRequest {
  std::string what;  // the beginning of its messages: "GET s3://bucket/key"
  std::function<net::HttpAnswer()> ask;
  // Why the answer is a failure; nullopt: it is none.
  std::function<std::optional<StoreRefusal>(const net::HttpAnswer&)> refusal_of;
  // Called once when the credentials have expired; empty: nothing.
  std::function<void()> renew = {};
  // Called before a retry, after the delay; empty: nothing.
  std::function<void()> before_retry = {};
};
// Returns the answer. Throws std::system_error with the refusal of the last of kStoreTries. Sets
// `was_repeated`, if not null, when a try got no answer: it may have taken effect.
[[nodiscard]] net::HttpAnswer ask_with_retries(const RetriedRequest& question,
                                               const net::Interrupt& interrupt,
                                               bool* was_repeated = nullptr);

// The total size, from the answer to a request for the first bytes. Throws std::system_error
// (kBadAnswer, for `url`) if the answer has another range.
[[nodiscard]] std::uint64_t whole_size(const net::HttpAnswer& answer, const std::string& url);
// Copies the bytes of the answer to a request for to.size() bytes from `offset` on; fewer at the
// end. Throws likewise.
[[nodiscard]] std::size_t take_range(const net::HttpAnswer& answer, const std::string& url,
                                     std::uint64_t offset, std::span<std::byte> to);
// The value of the field "range" of such a request.
[[nodiscard]] std::string range_text(std::uint64_t offset, std::size_t size);

// Waits before try `next` (the second is 2) of `what`, and logs why.
void pause_before_try(int next, std::string_view retry_after, const std::string& what,
                      const net::Interrupt& interrupt);

// The contents of a file of credentials; empty if it cannot be read, or is empty. Sets `why`, if
// not null, to the end of a sentence about a file that cannot be read.
[[nodiscard]] std::string small_file(const std::string& path, std::string* why = nullptr);

}  // namespace disttf::roles
