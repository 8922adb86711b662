// Client of a running launch, for other processes of its user.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disttf::roles {

// The path of the control socket: `socket`, or if that is empty the only one in `directory`. Throws
// Failure (kError) if none runs, or several do.
[[nodiscard]] std::string find_launch(const std::string& socket, const std::string& directory);

struct LaunchAnswer {
  std::error_code error;  // it is unreachable, or sent no answer
  int status = 0;
  std::string body;  // truncated after 32 MiB
  [[nodiscard]] bool is_ok() const noexcept { return status == 200; }
};
// Sends GET, or POST if there is a body. The timeout is short, since no signal interrupts it.
[[nodiscard]] LaunchAnswer ask_launch(const std::string& socket, const std::string& target,
                                      const std::string& body = {});

// The same, for the body of a status 200. Throws as fail_to_reach() and fail_as_reported() do.
[[nodiscard]] std::string ask_or_fail(const std::string& socket, const std::string& target,
                                      const std::string& body = {});

// The names of the tasks ("worker:1") of the launch at `socket`; if that is empty, of all launches
// in `directory`. An unreachable launch has none.
[[nodiscard]] std::vector<std::string> running_tasks(const std::string& socket,
                                                     const std::string& directory);

// Throws Failure with one sentence: kError if no launch is there, kLostPeers if it does not answer.
[[noreturn]] void fail_to_reach(const std::string& socket, const std::error_code& error);

// Throws Failure with the launch's own message, for a status other than 200: kError if the request
// cannot be served now, kUsage if the task or the value is unknown.
[[noreturn]] void fail_as_reported(int status, std::string_view body);

}  // namespace disttf::roles
