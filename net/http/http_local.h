// One HTTP request over a Unix socket: from a command to a process of the same user.
//
// Synchronous, for a program that does nothing else meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

namespace disttf::net {

struct LocalHttpRequest {
  std::string socket;  // the path of the Unix socket
  std::string method = "GET";
  std::string target;  // percent-encoded where needed
  std::string body;
  std::chrono::seconds read_timeout{10};  // the server's limit for a response; 0: forever
};

// Called with the status and no bytes when the response begins, then with each piece of its body.
using OnLocalBody = std::function<void(int status, std::string_view piece)>;

// Errors: system errors (ENOENT and ECONNREFUSED: no listener), std::errc::timed_out, HttpError for
// invalid HTTP, std::errc::filename_too_long. Throws std::system_error only when the process is out
// of file descriptors.
[[nodiscard]] std::error_code http_over_local(const LocalHttpRequest& request,
                                              const OnLocalBody& on_body);

// Returns no error if a listener accepts connections there, else the reason.
[[nodiscard]] std::error_code try_local(const std::string& socket);

}  // namespace disttf::net
