// Which processes of this machine may use the control socket of a launch.
//
// A launch serves its own user and root. It rejects its own tasks and their descendants: a
// compromised task must not have itself restarted with other flags. The kernel records the pid of a
// client when it connects, and /proc shows the parents of that process. keep_orphans() prevents a
// bypass: a process whose parent ends becomes a child of the launch, not of PID 1.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "net/http/http_service.h"

namespace disttf::roles {

// The reason for rejecting `peer`; nullopt: it is allowed. A process that /proc does not show (it
// has ended, or /proc hides it) is rejected, because its parents are unknown. A process with pid 0
// is outside of this process's PID namespace, so this launch cannot have started it.
[[nodiscard]] std::optional<std::string> why_refused(const net::LocalPeer& peer,
                                                     const std::filesystem::path& proc = "/proc");

// Makes this process the parent of every descendant whose parent ends (PR_SET_CHILD_SUBREAPER). The
// caller must reap them.
void keep_orphans() noexcept;

}  // namespace disttf::roles
