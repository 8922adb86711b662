// Whether the lines of a request's head are such that every server and proxy reads them alike.
//
// http_parser is lenient: it takes a bare line feed for the end of a line, a carriage return alone
// for that of the head, a blank before a colon, a line that continues another. Who stands before
// this server may read such bytes as another request than it does (request smuggling), so they are
// refused, as RFC 9112 (2.2, 3, 5.1, 5.2) allows or demands. Pure; one thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace disttf::net {

class HttpHeadLines {
 public:
  // `most_bytes`: of a head, and of empty lines before it.
  explicit HttpHeadLines(std::size_t most_bytes) noexcept : bytes_left_(most_bytes) {}

  // Takes the next bytes of a head, or of empty lines before it; what follows its end is not looked
  // at. Returns where the first byte stands that makes it a wrong one, or one that is too long, or
  // bytes.size(). Of no use behind such a byte.
  [[nodiscard]] std::size_t read(std::string_view bytes) noexcept;

  // Whether any byte of the head has come.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  // Whether all have.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  // Whether there are more than `most_bytes`.
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }

 private:
  [[nodiscard]] bool end_line() noexcept;
  [[nodiscard]] bool takes(char c) noexcept;

  std::size_t bytes_left_;
  char previous_ = '\0';
  bool begun_ = false;
  bool ended_ = false;
  bool too_long_ = false;
  bool is_request_line_ = true;
  bool line_is_empty_ = true;  // so far
  bool in_name_ = false;       // of a field: its colon has not come
  int spaces_ = 0;             // in the request line
};

// Whether a Host field names one server, this or any: a name or an address, in brackets where it is
// of IPv6, and perhaps a port (RFC 9110, 7.2; RFC 3986, 3.2.2; of the characters of a name the
// comma is left out, which is what stands between two).
[[nodiscard]] bool is_host_field(std::string_view value) noexcept;

}  // namespace disttf::net
