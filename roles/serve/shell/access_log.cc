#include "roles/serve/shell/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <system_error>

#include "net/wire/text.h"
#include "roles/serve/core/fast_json.h"

namespace disttf::roles {
namespace {

// "2026-11-21T09:50:05.123Z"
std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", text.data(), ms % 1000);
}

}  // namespace

std::shared_ptr<const data::FileDescriptor> open_access_log(const std::string& path) {
  constexpr mode_t kMode = 0644;
  // O_NONBLOCK: a FIFO without a reader blocks neither the start nor the answers.
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, kMode);
  if (file < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "--access_log: cannot write " + net::quoted(path));
  }
  return std::make_shared<data::FileDescriptor>(file);
}

void AccessLog::add(const net::HttpExchange& exchange, const AnswerFacts& facts) {
  if (file_ == nullptr) {
    return;
  }
  const net::HttpServerRequest& request = exchange.request();
  lines_ += R"({"time":")" + time_text() + R"(","peer":")" + exchange.peer() + R"(","method":)";
  // Escapes what the client sent; the peer's address and the time need none.
  append_string(lines_, request.method);
  lines_ += R"(,"path":)";
  append_string(lines_, request.path);
  lines_ += fmt::format(R"(,"status":{},"bytes":{})", facts.status, facts.bytes);
  if (facts.milliseconds) {
    lines_ += fmt::format(R"(,"ms":{:.3f})", *facts.milliseconds);
  }
  if (facts.rows > 0) {
    lines_ += fmt::format(R"(,"rows":{},"version":{})", facts.rows, facts.version);
  }
  lines_ += "}\n";
}

void AccessLog::write() noexcept {
  if (lines_.empty()) {
    return;
  }
  // One call with O_APPEND: lines of several threads do not mix. A full disk or pipe loses lines
  // rather than delaying answers.
  static_cast<void>(!::write(file_->number(), lines_.data(), lines_.size()));
  lines_.clear();
}

}  // namespace disttf::roles
