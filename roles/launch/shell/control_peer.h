// Which processes of this machine may use the control socket of a launch.
//
// A launch serves its own user and root, and refuses its own tasks and every process that a task
// has started: a task that was broken into must not have itself started again with other flags.
// The kernel records the pid of a caller when it connects, and /proc says who started that process.
// keep_orphans() closes the way around that: a process whose parent ends becomes a child of the
// launch, not of PID 1.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "net/http/http_server.h"

namespace disttf::roles {

// A sentence that says why `peer` is refused; nullopt: it may ask. A process that /proc does not
// show (it has ended, or /proc hides it) is refused, as nothing says who started it. A process with
// pid 0 is outside of this process's PID namespace, so this launch cannot have started it.
[[nodiscard]] std::optional<std::string> why_refused(const net::LocalPeer& peer,
                                                     const std::filesystem::path& proc = "/proc");

// From now on this process is the parent of every descendant whose parent ends
// (PR_SET_CHILD_SUBREAPER). The caller reaps them.
void keep_orphans() noexcept;

}  // namespace disttf::roles
