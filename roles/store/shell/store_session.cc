#include "roles/store/shell/store_session.h"

#include <fmt/format.h>

#include <utility>

#include "data/posix_file_system.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/store/core/s3_answers.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

constexpr net::HttpLimits kStoreLimits{.connect_timeout = 5s, .stall_timeout = 15s};
constexpr double kTwoTo53 = 9007199254740992.0;
// Of a token, a profile, a file of configuration.
constexpr std::size_t kMaxSmallFileBytes = std::size_t{1} << 20U;

}  // namespace

std::chrono::sys_seconds system_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

SessionPool::SessionPool(std::string ca_file, net::ProxySettings proxy,
                         const net::Interrupt& interrupt)
    : ca_file_(std::move(ca_file)), proxy_(std::move(proxy)), interrupt_(interrupt) {}

net::HttpAnswer SessionPool::ask(const net::HttpQuestion& question) {
  std::unique_ptr<net::HttpSession> session;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (session == nullptr) {
    session = std::make_unique<net::HttpSession>(kStoreLimits, ca_file_, proxy_, interrupt_);
  }
  net::HttpAnswer answer = session->ask(question);
  const std::scoped_lock lock(mutex_);
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

void pause_before_try(int next, std::string_view retry_after, const std::string& what,
                      const net::Interrupt& interrupt) {
  const double fraction = static_cast<double>(random_number() >> 11U) / kTwoTo53;
  const auto wait = wait_before_try(next, retry_after, fraction);
  log_debug(fmt::format("{}; try {} of {} in {} ms", what, next, kStoreTries, wait.count()));
  interrupt.wait_until(net::Clock::now() + wait);
}

std::string small_file(const std::string& path) {
  if (path.empty()) return {};
  try {
    data::PosixFileSystem disk;
    const auto bytes = data::read_file(disk, path, kMaxSmallFileBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace disttf::roles
