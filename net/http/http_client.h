// A download client: one GET into a sink, on the calling thread, over http or https.
//
// HTTP/1.1, one connection per request; follows redirects, and uses a proxy where the settings say
// so. Every wait is bounded by connect_timeout, stall_timeout, deadline and the interrupt. Logs
// nothing and keeps no state between calls; several threads may download at once.
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
#include "net/waiting/interrupt.h"

namespace disttf::net {

// Fewer bytes than this within stall_timeout are a stall: a server that only drips bytes is as
// useless as a silent one. 4 KiB in 15 s is half the speed of a 1990 modem.
inline constexpr std::uint64_t kMinStallBytes = 4096;

struct HttpRequest {
  Url url;
  std::uint64_t resume_from = 0;  // bytes that the caller has; requests the rest
  // For name resolution, connection, proxy and TLS handshake together.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds stall_timeout{15000};
  std::optional<Deadline> deadline;     // for everything; nullopt: only the two above
  std::uint64_t max_bytes = 1U << 30U;  // of the whole file; larger files are refused
  int max_redirects = 5;
  std::string ca_file;  // PEM; empty: find_ca_file()
  ProxySettings proxy;
  // Sent as "Authorization: Bearer" to `url`, but not to redirect targets; empty: none.
  std::string token = {};
};

// The facts of a 200 or 206 header.
struct HttpBodyInfo {
  std::uint64_t offset = 0;                  // position of the body in the file: resume_from, or
                                             // 0 when the server sends the whole file: start over
  std::optional<std::uint64_t> total_bytes;  // of the whole file
  bool accepts_ranges = false;
};

// Receives the body. An error code from a method ends the transfer and becomes its outcome.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Called once, before any data.
  [[nodiscard]] virtual std::error_code on_header(const HttpBodyInfo& info) = 0;
  // Called with the next bytes; borrowed for the call.
  [[nodiscard]] virtual std::error_code on_data(std::span<const std::byte> bytes) = 0;
};

// How far a transfer got. A caller retries (and resumes) after kBody only, and gives up on a server
// after kConnect.
enum class HttpStage : std::uint8_t {
  kConnect,   // no connection (name, TCP, proxy, TLS)
  kResponse,  // connected; no usable header arrived
  kBody,      // the body had begun
  kDone,      // the whole body was handed to the sink
};

struct HttpOutcome {
  std::error_code error;  // none exactly when the stage is kDone
  HttpStage stage = HttpStage::kConnect;
  // Empty on success, else one sentence without a full stop: URL, operation, expected and actual.
  std::string sentence;
  std::uint64_t received_bytes = 0;  // of the body, passed to the sink by this call
};

// Errors: HttpError, the sink's own, std::errc::timed_out (deadline), std::errc::operation_canceled
// (interrupt), or those of the system or the resolver. Throws std::invalid_argument for malformed
// proxy settings, and std::system_error only when the process is out of file descriptors.
[[nodiscard]] HttpOutcome http_get(const HttpRequest& request, HttpSink& sink,
                                   const Interrupt& interrupt);

}  // namespace disttf::net
