// Does on purpose what an attacker would use a vulnerability of a task for (--debug_attempts), so
// that tests see the kernel refuse it to a running task and not only to a function.
#pragma once

#include <string>
#include <string_view>

namespace disttf::roles {

struct Attempt {
  enum class Kind { kOpen, kConnect, kExec };
  Kind kind = Kind::kOpen;
  std::string what;  // a file to read, ADDRESS:PORT of IPv4, or a program
};

// Parses "open:/etc/shadow", "connect:127.0.0.1:80" or "exec:/bin/true". Throws
// std::invalid_argument with a text that says what is allowed.
[[nodiscard]] Attempt read_attempt(std::string_view text);

// Returns the outcome: "open /etc/shadow: Permission denied", or with ": done" after it. Does not
// return if a program could be executed: the process is that program then.
[[nodiscard]] std::string try_out(const Attempt& attempt);

}  // namespace disttf::roles
