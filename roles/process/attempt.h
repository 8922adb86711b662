// What a hole in a task would be used for, done on purpose (--debug_attempts): so that a test sees
// the kernel refuse it to a task that runs, and not only to a function.
#pragma once

#include <string>
#include <string_view>

namespace disttf::roles {

struct Attempt {
  enum class Kind { kOpen, kConnect, kExec };
  Kind kind = Kind::kOpen;
  std::string what;  // a file to read, ADDRESS:PORT of IPv4, or a program
};

// "open:/etc/shadow", "connect:127.0.0.1:80" or "exec:/bin/true". Throws std::invalid_argument,
// whose text says what is allowed.
[[nodiscard]] Attempt read_attempt(std::string_view text);

// What came of it: "open /etc/shadow: Permission denied", or with ": done" behind it. Of a program
// that may be run there is no return: the process is that program then.
[[nodiscard]] std::string try_out(const Attempt& attempt);

}  // namespace disttf::roles
