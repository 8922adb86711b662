#include "roles/store/shell/http_file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "net/wire/text.h"
#include "roles/store/core/read_ahead.h"
#include "roles/store/core/s3_answers.h"
#include "roles/store/core/store_error.h"

namespace disttf::roles {
namespace {

constexpr int kMaxRedirects = 5;
// Of a server that knows no ranges, and so sends all at one go. It is kept in memory.
constexpr std::size_t kMaxHttpFile = std::size_t{256} << 20U;
constexpr int kNoSuchRange = 416;

struct HttpRefusal {
  StoreError error = StoreError::kRefused;
  bool may_pass = false;
};

HttpRefusal meaning_of_http(const net::HttpAnswer& answer) {
  static constexpr std::array<int, 6> kPassing{408, 429, 500, 502, 503, 504};
  if (answer.error) {
    const bool passes =
        !is_certificate_error(answer.error) && answer.error != net::HttpError::kTooLarge;
    return {passes ? StoreError::kAway : StoreError::kRefused, passes};
  }
  const int status = answer.head.status;
  if (std::ranges::find(kPassing, status) != kPassing.end()) return {StoreError::kAway, true};
  if (status == 404 || status == 410) return {StoreError::kNotFound};
  if (status == 401 || status == 403) return {StoreError::kDenied};
  return {};
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::chrono::sys_seconds time_of_change(const net::HttpHead& head) {
  // Where it is not said it may have been just now.
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
  int redirects = 0;
  for (int tries = 1;;) {
    net::HttpAnswer answer = sessions_.ask(question);
    const int status = answer.head.status;
    if (!answer.error && (status < 300 || status == kNoSuchRange)) return answer;
    std::string sentence = method + " " + url + ": ";
    if (!answer.error && is_redirect(status)) {
      std::string why;
      auto next = net::join_url(question.url, answer.head.location, why);
      // What was asked for over TLS is not looked for without it.
      const bool is_safe = next && (next->scheme == net::Scheme::kHttps ||
                                    question.url.scheme == net::Scheme::kHttp);
      if (is_safe && ++redirects <= kMaxRedirects) {
        question.url = *std::move(next);
        continue;
      }
      throw std::system_error(StoreError::kRefused, sentence + "it is not followed to " +
                                                        net::quoted(answer.head.location));
    }
    sentence +=
        answer.error ? answer.sentence : "the server answered " + net::status_text(answer.head);
    const HttpRefusal refusal = meaning_of_http(answer);
    if (!refusal.may_pass || tries >= kStoreTries) throw std::system_error(refusal.error, sentence);
    pause_before_try(++tries, answer.head.retry_after, sentence, interrupt_);
  }
}

net::HttpHead HttpFileSystem::head_of(const std::string& url) { return ask("HEAD", url, "").head; }

std::size_t HttpFileSystem::read(const std::string& url, const std::string& etag,
                                 std::uint64_t offset, std::span<std::byte> to) {
  const net::HttpAnswer answer =
      ask("GET", url, fmt::format("bytes={}-{}", offset, offset + to.size() - 1));
  const auto range = net::read_content_range(answer.head.content_range);
  if (answer.head.etag != etag) {
    throw std::system_error(StoreError::kBadAnswer, url + " has changed while it was read");
  }
  if (answer.head.status != 206 || !range || range->first != offset ||
      answer.body.size() > to.size() || *range->last - offset + 1 != answer.body.size()) {
    throw std::system_error(
        StoreError::kBadAnswer,
        fmt::format("GET {}: another range came than {} bytes from {} on", url, to.size(), offset));
  }
  std::memcpy(to.data(), answer.body.data(), answer.body.size());
  return answer.body.size();
}

std::unique_ptr<data::OpenFile> HttpFileSystem::open(const Path& path) {
  const std::string url = path.string();
  net::HttpAnswer answer = ask("GET", url, "bytes=0-" + std::to_string(kReadAtOnce - 1));
  if (answer.head.status == kNoSuchRange) answer.body.clear();  // it is empty
  std::uint64_t size = answer.body.size();
  if (answer.head.status == 206) {
    const auto range = net::read_content_range(answer.head.content_range);
    if (!range || range->first != 0 || !range->total || *range->last + 1 != size) {
      throw std::system_error(StoreError::kBadAnswer, "GET " + url + ": the Content-Range is " +
                                                          net::quoted(answer.head.content_range));
    }
    size = *range->total;
  }
  return std::make_unique<ReadAhead>(
      size, answer.body,
      [this, url, etag = answer.head.etag](std::uint64_t offset, std::span<std::byte> to) {
        return read(url, etag, offset, to);
      });
}

std::uint64_t HttpFileSystem::size_of(const Path& path, std::error_code& error) {
  std::uint64_t size = 0;
  error = error_code_of([&]() -> std::error_code {
    const net::HttpHead head = head_of(path.string());
    if (!head.content_length) return StoreError::kBadAnswer;
    size = *head.content_length;
    return {};
  });
  return size;
}

std::filesystem::file_time_type HttpFileSystem::last_write(const Path& path) {
  return std::chrono::file_clock::from_sys(time_of_change(head_of(path.string())));
}

std::filesystem::file_time_type HttpFileSystem::now(const Path& /*directory*/) {
  return std::chrono::file_clock::from_sys(system_now());
}

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
