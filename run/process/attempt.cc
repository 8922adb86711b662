#include "run/process/attempt.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "data/file.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

struct Word {
  std::string_view name;
  Attempt::Kind kind;
};
// In the order of Attempt::Kind, by which try_out() indexes it.
constexpr std::array<Word, 3> kWords = {{{"open", Attempt::Kind::kOpen},
                                         {"connect", Attempt::Kind::kConnect},
                                         {"exec", Attempt::Kind::kExec}}};

std::optional<sockaddr_in> ipv4_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (read.ec != std::errc{} || read.ptr != end ||
      inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    return std::nullopt;
  }
  return address;
}

bool opens(const std::string& file) {
  return data::FileDescriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC)).is_open();
}

bool connects(const std::string& where) {
  const std::optional<sockaddr_in> address = ipv4_address(where);
  const data::FileDescriptor socket_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // On Linux SO_SNDTIMEO bounds connect(), which else may wait for minutes.
  const timeval patience{.tv_sec = 3, .tv_usec = 0};  // if no one answers
  return address && socket_of.is_open() &&
         setsockopt(socket_of.number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ==
             0 &&
         connect(socket_of.number(), reinterpret_cast<const sockaddr*>(&*address),
                 sizeof(*address)) == 0;
}

// Returns only if it is refused.
bool becomes(const std::string& program) {
  // A copy, since execv() takes pointers to non-const characters.
  std::string name = program;
  std::array<char*, 2> arguments = {name.data(), nullptr};
  execv(program.c_str(), arguments.data());
  return false;
}

}  // namespace

Attempt read_attempt(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (const Word& word : kWords) {
    if (colon == std::string_view::npos || text.substr(0, colon) != word.name) continue;
    Attempt attempt{.kind = word.kind, .what = std::string(text.substr(colon + 1))};
    if (attempt.what.empty() ||
        (attempt.kind == Attempt::Kind::kConnect && !ipv4_address(attempt.what))) {
      break;
    }
    return attempt;
  }
  throw std::invalid_argument(
      net::quoted(text) + " is not one of open:FILE, connect:ADDRESS:PORT (IPv4), exec:PROGRAM");
}

std::string try_out(const Attempt& attempt) {
  errno = 0;
  const bool is_done = attempt.kind == Attempt::Kind::kOpen      ? opens(attempt.what)
                       : attempt.kind == Attempt::Kind::kConnect ? connects(attempt.what)
                                                                 : becomes(attempt.what);
  const std::string why =
      is_done ? "done" : std::error_code(errno, std::generic_category()).message();
  // A program that was executed does not get here: it has replaced this one.
  return std::string(kWords[static_cast<std::size_t>(attempt.kind)].name) + " " + attempt.what +
         ": " + why;
}

}  // namespace disttf::roles
