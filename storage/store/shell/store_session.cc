#include "storage/store/shell/store_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "data/posix_file_system.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "run/process/machine.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

constexpr net::HttpLimits kStoreLimits{.connect_timeout = 5s, .stall_timeout = 15s};
constexpr double kTwoTo53 = 9007199254740992.0;
// The limit for a token, a profile, a file of settings.
constexpr std::size_t kMaxSmallFileBytes = std::size_t{1} << 20U;

}  // namespace

std::chrono::sys_seconds system_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::chrono::seconds work_patience(std::uint64_t bytes) {
  // Assumes a low rate, so that the copy of a large object does not time out.
  constexpr std::uint64_t kBytesASecond = 4'000'000;
  return std::min<std::chrono::seconds>(2min + std::chrono::seconds(bytes / kBytesASecond), 10min);
}

SessionPool::SessionPool(std::string ca_file, net::ProxySettings proxy,
                         const net::Interrupt& interrupt)
    : ca_file_(std::move(ca_file)), proxy_(std::move(proxy)), interrupt_(interrupt) {}

net::HttpAnswer SessionPool::ask(const net::HttpQuestion& question) {
  std::unique_ptr<net::HttpSession> session;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      // The one used last: its connection is the least likely to have timed out.
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (session == nullptr) {
    session = std::make_unique<net::HttpSession>(kStoreLimits, ca_file_, proxy_, interrupt_);
  }
  // Without the lock: requests run in parallel, each on its own connection.
  net::HttpAnswer answer = session->ask(question);
  const std::scoped_lock lock(mutex_);
  // There are as many as there were requests at one time. A session whose connection has failed
  // opens another.
  idle_.push_back(std::move(session));
  return answer;
}

void StoreClock::note(std::string_view date) {
  if (const auto time = time_from_http(date)) {
    ahead_s_ = (*time - system_now()).count();
    is_known_ = true;
  }
}

std::chrono::sys_seconds StoreClock::now() const {
  return system_now() + std::chrono::seconds(ahead_s_);
}

bool is_certificate_error(const std::error_code& error) {
  return error == net::HttpError::kBadCertificate || error == net::HttpError::kNoCaFile ||
         error == net::HttpError::kBadCaFile;
}

std::string failure_text(const net::HttpAnswer& answer) {
  return answer.error ? answer.error.message() : "it answered " + net::status_text(answer.head);
}

StoreRefusal refusal_of_error(const net::HttpAnswer& answer) {
  // A certificate does not become valid by waiting; any other failure of a connection may pass.
  const bool may_pass = !is_certificate_error(answer.error);
  return {.error = may_pass ? StoreError::kAway : StoreError::kRefused,
          .sentence = answer.sentence,
          .may_pass = may_pass};
}

net::HttpAnswer ask_with_retries(const RetriedRequest& question, const net::Interrupt& interrupt,
                                 bool* was_repeated) {
  bool has_renewed = false;
  for (int tries = 1;; ++tries) {
    net::HttpAnswer answer = question.ask();
    if (was_repeated != nullptr && answer.was_repeated) *was_repeated = true;
    const std::optional<StoreRefusal> refusal = question.refusal_of(answer);
    if (!refusal) return answer;
    // Credentials may expire early or be revoked: renew them once, without counting a try.
    if (question.renew && refusal->error == StoreError::kExpired &&
        !std::exchange(has_renewed, true)) {
      question.renew();
      continue;
    }
    const std::string what = question.what + ": " + refusal->sentence;
    if (!refusal->may_pass || tries >= kStoreTries) throw std::system_error(refusal->error, what);
    // After a retry the server may have carried out the request twice.
    if (was_repeated != nullptr) *was_repeated = true;
    if (question.before_retry) question.before_retry();
    pause_before_try(tries + 1, answer.head.retry_after, what, interrupt);
  }
}

std::uint64_t whole_size(const net::HttpAnswer& answer, const std::string& url) {
  const std::uint64_t size = answer.body.size();
  // A server without ranges sends the whole file.
  if (answer.head.status != net::http_status::kPartialContent) return size;
  const auto range = net::read_content_range(answer.head.content_range);
  if (!range || range->first != 0 || !range->total || *range->last + 1 != size) {
    throw std::system_error(StoreError::kBadAnswer, "GET " + url + ": the Content-Range is " +
                                                        net::quoted(answer.head.content_range));
  }
  return *range->total;
}

std::size_t take_range(const net::HttpAnswer& answer, const std::string& url, std::uint64_t offset,
                       std::span<std::byte> to) {
  const auto range = net::read_content_range(answer.head.content_range);
  // A server may answer with fewer bytes than requested; the reader then asks for the rest.
  if (answer.head.status != net::http_status::kPartialContent || !range || range->first != offset ||
      answer.body.size() > to.size() || *range->last - offset + 1 != answer.body.size()) {
    throw std::system_error(
        StoreError::kBadAnswer,
        fmt::format("GET {}: the answer has another range than {} bytes from {} on", url, to.size(),
                    offset));
  }
  std::memcpy(to.data(), answer.body.data(), answer.body.size());
  return answer.body.size();
}

std::string range_text(std::uint64_t offset, std::size_t size) {
  return fmt::format("bytes={}-{}", offset, offset + size - 1);
}

void pause_before_try(int next, std::string_view retry_after, const std::string& what,
                      const net::Interrupt& interrupt) {
  // The top 53 bits, which a double represents exactly.
  const double fraction = static_cast<double>(random_number() >> 11U) / kTwoTo53;
  const auto wait = wait_before_try(next, retry_after, fraction);
  log_debug(fmt::format("{}; try {} of {} in {} ms", what, next, kStoreTries, wait.count()));
  // An interrupt ends the pause; the next try then ends at once.
  interrupt.wait_until(net::Clock::now() + wait);
}

std::string small_file(const std::string& path, std::string* why) {
  if (path.empty()) return {};
  try {
    data::PosixFileSystem disk;
    const auto bytes = data::read_file(disk, path, kMaxSmallFileBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const std::system_error& error) {
    // A file that cannot be read counts as absent: other sources of credentials follow.
    if (why != nullptr) *why = "cannot be read: " + error.code().message();
    return {};
  }
}

}  // namespace disttf::roles
