// A program of the kernel's packet filter (seccomp(2)) that decides what becomes of each system
// call of a process.
//
// Every block of it ends with an answer, so blocks can be put behind each other. Most calls get the
// same answer whatever their arguments are; the kernel looks these up in a table (from Linux 5.11
// on), so that they cost nothing.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "roles/process/system_calls.h"

namespace disttf::roles {

// `kPrograms`: all calls but a list of dangerous ones, as it is not known what programs of others
// need. Else the calls of the kind's list (system_calls.h), with the arguments that they need:
//
//   sockets   TCP, UDP, the netlink of routes, and between tasks of this machine AF_UNIX with
//             SOCK_SEQPACKET. So neither MPTCP nor SCTP, which Landlock does not see, nor a stream
//             to a socket that has a path. A launcher and commands may have streams, too
//   sending   not with MSG_FASTOPEN, which connects without connect()
//   others    limits, processors and priorities of this process alone; signals to itself alone,
//             but for a launcher
//   files     no new modes but 0644 and 0755, no new dates but of open files
//
// A call that is refused fails with EPERM; one that this list knows nothing of, as it is newer,
// with ENOSYS, which libraries take for an older kernel. Throws std::bad_alloc.
[[nodiscard]] std::vector<sock_filter> filter_of_calls(ProcessKind kind);

}  // namespace disttf::roles
