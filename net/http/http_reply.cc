#include "net/http/http_reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {

bool HttpReply::has_field(std::string_view name) const noexcept {
  return std::any_of(fields.begin(), fields.end(),
                     [name](const auto& field) { return field.first == name; });
}

HttpReply error_reply(int status, std::string_view sentence) {
  // one_line() replaces invalid UTF-8 already; the handler makes sure that dump() cannot throw.
  return {.status = status,
          .body = nlohmann::json{{"error", one_line(sentence)}}.dump(
                      -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                  "\n"};
}

std::string refusal_sentence(int status, std::size_t max_body_bytes) {
  switch (status) {
    case http_status::kUnauthorized:
      return "Authorization: missing or wrong; expected \"Bearer\" and the token of this launch";
    case http_status::kRequestTimeout:
      return "the request was not complete within the allowed time";
    case http_status::kContentTooLarge:
      return "the request's body is too large; " + std::to_string(max_body_bytes / 1024) +
             " KiB are allowed";
    case http_status::kHeadTooLarge:
      return "the request's head is too large; 8 KiB are allowed";
    case http_status::kNotImplemented:
      return "this method, CONNECT, and a Transfer-Encoding other than chunked are not supported "
             "here";
    case http_status::kExpectationFailed:
      return "Expect: only 100-continue is supported here";
    case http_status::kUnavailable:
      return "too many connections are open; try again";
    case http_status::kVersionNotSupported:
      return "only HTTP/1.1 and HTTP/1.0 are supported here";
    default:
      return "the request is not valid HTTP: lines must end in CR LF, no blank before a "
             "colon, one Host, a path that begins with /, Content-Length or chunks and not both";
  }
}

std::string head_text(const HttpReply& reply, bool stays_open, bool takes_chunks) {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " " +
                     std::string(http_reason(reply.status)) + "\r\n";
  const auto add = [&text](std::string_view name, std::string_view value) {
    text.append(name).append(": ").append(value).append("\r\n");
  };
  // A 304 has no body, and its fields would replace those of the browser's stored reply.
  if (reply.status != http_status::kNotModified) add("Content-Type", reply.content_type);
  add("Connection", stays_open ? "keep-alive" : "close");
  if (reply.status == http_status::kUnauthorized && !reply.has_field("WWW-Authenticate")) {
    add("WWW-Authenticate", "Bearer");
  }
  for (const auto& [name, value] : reply.fields) add(name, value);
  // A stream's length is unknown: it ends with an empty chunk, or with the connection.
  if (reply.lines) {
    if (takes_chunks) add("Transfer-Encoding", "chunked");
  } else if (reply.status != http_status::kNotModified) {
    add("Content-Length", std::to_string(reply.body.size()));
  }
  return text + "\r\n";
}

void HttpLineStream::append(std::string_view line) {
  if (ended_) return;
  if (pending_.size() + line.size() + 1 <= kMaxPendingBytes) {
    pending_.append(line) += '\n';
  } else if (when_full_ == WhenFull::kLeaveOut) {
    ++left_out_;
  } else {
    pending_ = {};  // a partial backlog would hide a gap in the numbers
    ended_ = true;
  }
  if (changed_) changed_();
}

void HttpLineStream::end() {
  ended_ = true;
  if (changed_) changed_();
}

std::string HttpLineStream::take() {
  std::string text = std::exchange(pending_, {});
  if (const std::size_t lines = std::exchange(left_out_, 0); lines != 0) {
    text += "(" + std::to_string(lines) + " lines dropped: the reader was too slow)\n";
  }
  return text;
}

}  // namespace disttf::net
