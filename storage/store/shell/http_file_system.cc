#include "storage/store/shell/http_file_system.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "storage/store/core/store_error.h"
#include "storage/store/core/store_file_system.h"

namespace disttf::roles {
namespace {

constexpr int kMaxRedirects = 5;
// The limit for a server without ranges, which sends the whole file. It is kept in memory.
constexpr std::size_t kMaxHttpFile = std::size_t{256} << 20U;

std::optional<StoreRefusal> refusal_of_http(const net::HttpAnswer& answer) {
  static constexpr std::array<int, 6> kPassing{
      net::http_status::kRequestTimeout, net::http_status::kTooManyRequests,
      net::http_status::kServerError,    net::http_status::kBadGateway,
      net::http_status::kUnavailable,    net::http_status::kGatewayTimeout};
  // A file does not become smaller by a retry.
  if (answer.error == net::HttpError::kTooLarge) return StoreRefusal{.sentence = answer.sentence};
  if (answer.error) return refusal_of_error(answer);
  const int status = answer.head.status;
  if (status < 300 || status == net::http_status::kRangeNotSatisfiable) return std::nullopt;
  StoreRefusal refusal{.sentence = "the server answered " + net::status_text(answer.head)};
  if (std::ranges::find(kPassing, status) != kPassing.end()) {
    refusal.error = StoreError::kAway;
    refusal.may_pass = true;
  } else if (status == net::http_status::kNotFound || status == net::http_status::kGone) {
    refusal.error = StoreError::kNotFound;
  } else if (status == net::http_status::kUnauthorized || status == net::http_status::kForbidden) {
    refusal.error = StoreError::kDenied;
  }
  return refusal;
}

bool is_redirect(int status) {
  return status == net::http_status::kMovedPermanently || status == net::http_status::kFound ||
         status == net::http_status::kSeeOther || status == net::http_status::kTemporaryRedirect ||
         status == net::http_status::kPermanentRedirect;
}

std::chrono::sys_seconds time_of_change(const net::HttpHead& head) {
  // Without a date, the file may have changed just now.
  return time_from_http(head.last_modified).value_or(system_now());
}

std::error_code only_read() { return std::make_error_code(std::errc::read_only_file_system); }

}  // namespace

HttpFileSystem::HttpFileSystem(const StoreEnvironment& environment)
    : sessions_("", environment.proxy, interrupt_) {}

net::HttpAnswer HttpFileSystem::ask(const std::string& method, const std::string& url,
                                    const std::string& range) {
  net::HttpQuestion question{.method = method,
                             .url = net::parse_url("a place", url),
                             .fields = {},
                             .body = {},
                             .max_answer_bytes = kMaxHttpFile};
  if (!range.empty()) question.fields.emplace_back("range", range);
  const std::string what = method + " " + url;
  return ask_with_retries(
      {.what = what, .ask = [&] { return follow(question, what); }, .refusal_of = refusal_of_http},
      interrupt_);
}

net::HttpAnswer HttpFileSystem::follow(net::HttpQuestion& question, const std::string& what) {
  for (int redirects = 0;; ++redirects) {
    net::HttpAnswer answer = sessions_.ask(question);
    if (answer.error || !is_redirect(answer.head.status)) return answer;
    std::string why;
    auto next = net::join_url(question.url, answer.head.location, why);
    // A request over TLS is not redirected to clear text.
    const bool is_safe =
        next && (next->scheme == net::Scheme::kHttps || question.url.scheme == net::Scheme::kHttp);
    if (!is_safe || redirects == kMaxRedirects) {
      throw std::system_error(StoreError::kRefused, what + ": refusing the redirect to " +
                                                        net::quoted(answer.head.location));
    }
    question.url = *std::move(next);
  }
}

std::size_t HttpFileSystem::read(const std::string& url, const std::string& etag,
                                 std::uint64_t offset, std::span<std::byte> to) {
  const net::HttpAnswer answer = ask("GET", url, range_text(offset, to.size()));
  // Pieces of two versions must not be mixed. Without an entity tag on both sides nothing is
  // noticed.
  if (answer.head.etag != etag) {
    throw std::system_error(StoreError::kBadAnswer, url + " changed while it was read");
  }
  return take_range(answer, url, offset, to);
}

std::unique_ptr<data::OpenFile> HttpFileSystem::open(const Path& path) {
  const std::string url = path.string();
  // One request finds the size and the entity tag, and brings the first bytes.
  net::HttpAnswer answer = ask("GET", url, range_text(0, kReadAtOnce));
  // The answer for an empty file.
  if (answer.head.status == net::http_status::kRangeNotSatisfiable) answer.body.clear();
  const std::uint64_t size = whole_size(answer, url);
  return std::make_unique<ReadAhead>(
      size, answer.body,
      [this, url, etag = answer.head.etag](std::uint64_t offset, std::span<std::byte> to) {
        return read(url, etag, offset, to);
      });
}

std::uint64_t HttpFileSystem::size_of(const Path& path, std::error_code& error) {
  std::uint64_t size = 0;
  error = error_code_of([&]() -> std::error_code {
    const net::HttpHead head = ask("HEAD", path.string(), "").head;
    if (!head.content_length) return StoreError::kBadAnswer;
    size = *head.content_length;
    return {};
  });
  return size;
}

std::filesystem::file_time_type HttpFileSystem::last_write(const Path& path) {
  return std::chrono::file_clock::from_sys(time_of_change(ask("HEAD", path.string(), "").head));
}

// Nothing is written here, so the server's clock does not matter.
std::filesystem::file_time_type HttpFileSystem::now(const Path& /*directory*/) {
  return std::chrono::file_clock::from_sys(system_now());
}

// HTTP has no listing, so no URL is a directory.
std::optional<std::vector<StoreEntry>> HttpFileSystem::entries(const Path& /*directory*/) {
  return std::nullopt;
}

std::unique_ptr<data::NewFile> HttpFileSystem::create(const Path& target) {
  throw std::system_error(only_read(), "cannot write " + target.string());
}

bool HttpFileSystem::create_directory(const Path& /*path*/, std::error_code& error) {
  error = only_read();
  return false;
}

std::error_code HttpFileSystem::rename(const Path& /*from*/, const Path& /*to*/) {
  return only_read();
}

std::error_code HttpFileSystem::link(const Path& /*from*/, const Path& /*to*/) {
  return only_read();
}

std::error_code HttpFileSystem::remove(const Path& /*path*/) { return only_read(); }

void HttpFileSystem::sync_directory(const Path& /*directory*/) {}

}  // namespace disttf::roles
