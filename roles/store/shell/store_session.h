// What the clients of all stores have in common: connections that stay open, used by several
// threads; the store's clock; how long to wait before another try; small files of settings.
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
#include "net/transport/interrupt.h"
#include "roles/store/core/store_answers.h"

namespace disttf::roles {

[[nodiscard]] std::chrono::sys_seconds system_now();

// How long a store may be silent over a request that makes it work on so many bytes that it has:
// two minutes and a second for each 4 MB, ten minutes at most. Of AWS it is known that making one
// object of many parts can take minutes, where its own client gives any request 60 s. An emulator
// reads all that it makes one: on two processors with ten times the work it took 63 s for 512 MB,
// and for 960 MB more than two minutes. A longer time would be one more in which a save waits for a
// store that has gone without a word, three times over.
[[nodiscard]] std::chrono::seconds work_patience(std::uint64_t bytes = 0);

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

// Of an answer that has not come at all.
[[nodiscard]] StoreRefusal refusal_of_error(const net::HttpAnswer& answer);

// A question that is asked again where that may help.
struct PatientQuestion {
  std::string what;  // "GET s3://bucket/key": how what is said of it begins
  std::function<net::HttpAnswer()> ask;
  // Why what has come is no answer; nullopt: it is one.
  std::function<std::optional<StoreRefusal>(const net::HttpAnswer&)> refusal_of;
  // Done once, where who one is has expired; empty: nothing.
  std::function<void()> renew = {};
  // Done before another try, besides waiting; empty: nothing.
  std::function<void()> before_retry = {};
};
// The answer. Throws std::system_error, of the refusal of the last of kStoreTries. `was_repeated`,
// where given, is set once a try has got no answer: it may have been done all the same.
[[nodiscard]] net::HttpAnswer ask_patiently(const PatientQuestion& question,
                                            const net::Interrupt& interrupt,
                                            bool* was_repeated = nullptr);

// Of an answer to who asked for the first bytes of something: how large that is. Throws
// std::system_error (kBadAnswer, of `url`) where they are not those.
[[nodiscard]] std::uint64_t whole_size(const net::HttpAnswer& answer, const std::string& url);
// Of an answer to who asked for so many bytes from `offset` on: copies them, fewer at the end.
// Throws the same.
[[nodiscard]] std::size_t take_range(const net::HttpAnswer& answer, const std::string& url,
                                     std::uint64_t offset, std::span<std::byte> to);
// What such a question says in its field "range".
[[nodiscard]] std::string range_text(std::uint64_t offset, std::size_t size);

// Before try `next` (the second is 2) of `what`, of which the last one ended so.
void pause_before_try(int next, std::string_view retry_after, const std::string& what,
                      const net::Interrupt& interrupt);

// A file of credentials. Empty: it cannot be read, or is empty.
// `why`: where not null, gets the end of a sentence about a file that cannot be read.
[[nodiscard]] std::string small_file(const std::string& path, std::string* why = nullptr);

}  // namespace disttf::roles
