// A running launch, as other processes of its user find and hear it.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disttf::roles {

// The path of its socket: `socket`, or where that is empty the only one in `directory`. Throws
// Failure (kError) where none runs, or several do.
[[nodiscard]] std::string find_launch(const std::string& socket, const std::string& directory);

struct LaunchAnswer {
  std::error_code error;  // it could not be reached, or said nothing
  int status = 0;
  std::string body;  // at most 32 MiB of it
  [[nodiscard]] bool is_ok() const noexcept { return status == 200; }
};
// GET, or POST where there is a body. Waits a short time only, since no signal ends it.
[[nodiscard]] LaunchAnswer ask_launch(const std::string& socket, const std::string& target,
                                      const std::string& body = {});

// The names of the tasks ("worker:1") of the launch at `socket`, or where that is empty of all in
// `directory`. A launch that cannot be asked has none.
[[nodiscard]] std::vector<std::string> running_tasks(const std::string& socket,
                                                     const std::string& directory);

// Throws Failure with one sentence: kError where no launch is there, kLostPeers where it is and
// does not answer.
[[noreturn]] void fail_to_reach(const std::string& socket, const std::error_code& error);

// The launch has answered with another status than 200. Throws Failure with what it says: kError
// where that cannot be done now, kUsage where it does not know the task or the value.
[[noreturn]] void fail_as_told(int status, std::string_view body);

}  // namespace disttf::roles
