// One HTTP request over a Unix socket: what a command says to a process of the same user.
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
  std::string target;  // with what has to be encoded encoded
  std::string body;
  std::chrono::seconds silence{10};  // of the server, before it is given up; 0: for ever
};

// `on_body` gets the status and the next piece of the body, as it comes. Errors: what the system
// said (ENOENT and ECONNREFUSED: nobody listens there), std::errc::timed_out, HttpError for what is
// no HTTP, std::errc::filename_too_long.
[[nodiscard]] std::error_code http_over_local(
    const LocalHttpRequest& request,
    const std::function<void(int status, std::string_view piece)>& on_body);

// Whether somebody accepts connections there: no error; or why not.
[[nodiscard]] std::error_code try_local(const std::string& socket);

}  // namespace disttf::net
