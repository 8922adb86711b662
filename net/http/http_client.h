// A download client: one GET into a sink, on the calling thread, over http or https.
//
// HTTP/1.1, one connection a request, redirects followed, through a proxy where the settings say
// so. Every wait is bounded: by connect_timeout, stall_timeout, deadline and the interrupt.
// Nothing is logged and no state is kept between calls; several threads may download at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "net/http/http_error.h"
#include "net/http/http_proxy.h"
#include "net/http/url.h"
#include "net/transport/interrupt.h"

namespace disttf::net {

// A server that drips bytes is as dead as one that sends none: fewer than this within
// stall_timeout is a stall. 4 KiB in 15 s is half the speed of a 1990 modem.
inline constexpr std::uint64_t kMinStallBytes = 4096;

struct HttpRequest {
  Url url;
  std::uint64_t resume_from = 0;  // bytes that the caller has: ask for the rest
  // Name, connection, proxy and TLS handshake together.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds stall_timeout{15000};
  std::optional<Deadline> deadline;     // for everything; none: the two above bound it
  std::uint64_t max_bytes = 1U << 30U;  // of the whole file; more is refused
  int max_redirects = 5;
  std::string ca_file;  // PEM; empty: find_ca_file()
  ProxySettings proxy;
  // Said as "Authorization: Bearer" to `url`, and to nobody to whom it redirects; empty: none.
  std::string token = {};
};

// What the header of a 200 or 206 says.
struct HttpBodyInfo {
  std::uint64_t offset = 0;                  // where in the file the body begins: resume_from, or
                                             // 0 when the server sends all of it: start over
  std::optional<std::uint64_t> total_bytes;  // of the whole file
  bool accepts_ranges = false;
};

// Where the body goes. An error code that a method returns ends the transfer and is its outcome.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Once, before any data.
  [[nodiscard]] virtual std::error_code on_header(const HttpBodyInfo& info) = 0;
  // The next bytes; borrowed for the call.
  [[nodiscard]] virtual std::error_code on_data(std::span<const std::byte> bytes) = 0;
};

// How far a transfer got: a caller tries again (and resumes) after kBody only, and has no more
// use for a server that it did not get past kConnect with.
enum class HttpStage : std::uint8_t {
  kConnect,   // no connection (name, TCP, proxy, TLS)
  kResponse,  // connected; no usable header came
  kBody,      // the body had begun
  kDone,      // the whole body was handed to the sink
};

struct HttpOutcome {
  std::error_code error;  // none exactly when the stage is kDone
  HttpStage stage = HttpStage::kConnect;
  // Empty on success, else one sentence without a full stop: URL, operation, expected and actual.
  std::string sentence;
  std::uint64_t received_bytes = 0;  // of the body, handed to the sink by this call
};

// Errors: HttpError, the sink's own, std::errc::timed_out (deadline), std::errc::operation_canceled
// (interrupt), or what the system or the resolver said.
// Throws std::invalid_argument for malformed proxy settings, and std::system_error only when the
// process is out of file descriptors.
[[nodiscard]] HttpOutcome http_get(const HttpRequest& request, HttpSink& sink,
                                   const Interrupt& interrupt);

}  // namespace disttf::net
