// A running launch, as other processes of its user find and hear it.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace disttf::roles {

// The path of its socket: `socket`, or where that is empty the only one in `directory`. Throws
// Failure (kError) where none runs, or several do.
[[nodiscard]] std::string find_launch(const std::string& socket, const std::string& directory);

// Throws Failure with one sentence: kError where no launch is there, kLostPeers where it is and
// does not answer.
[[noreturn]] void fail_to_reach(const std::string& socket, const std::error_code& error);

// The launch has answered with another status than 200. Throws Failure with what it says: kError
// where that cannot be done now, kUsage where it does not know the task or the value.
[[noreturn]] void fail_as_told(int status, std::string_view body);

}  // namespace disttf::roles
