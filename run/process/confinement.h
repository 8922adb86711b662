// What a process gives up before it reads a byte from a peer or a file, so that an attacker who
// controls it can do little.
//
//  - no_new_privs: no program that it runs has more rights (prctl(2))
//  - a filter of system calls (seccomp(2)), with a list for each kind of process.
//    A call that is not on the list fails with EPERM
//
// For files and addresses see sandbox.h.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "run/process/system_calls.h"

namespace disttf::roles {

struct Confinement {
  bool no_new_privileges = false;
  bool filters_calls = false;  // false: this kernel or container has no seccomp
};

// Takes effect now and for good, for this thread and those that it starts, so it must be called
// before there is a second thread. The tasks of a launcher inherit its filter, and confine
// themselves further. Returns what is in force. Never fails: an older kernel supports less.
Confinement confine(ProcessKind kind) noexcept;

// For good, in a process that is about to read a secret: it leaves no core dump, and its memory,
// environment and descriptors are closed to other processes of its user except root's
// (PR_SET_DUMPABLE). A program that it starts does not inherit that. Returns false if it is not in
// force.
bool keep_memory_private() noexcept;

// The program of the kernel's packet filter (seccomp(2)) that decides each system call of a
// process.
//
// Every block of the program ends with an answer, so blocks can be concatenated. Most calls get the
// same answer whatever their arguments are; the kernel keeps these in a table (since Linux 5.11),
// so that they cost nothing.

// `kPrograms`: allows all calls except a list of dangerous ones, because the needs of other
// programs are unknown. Otherwise allows the calls of the kind's list (system_calls.h), with the
// arguments that they need:
//
//  sockets   TCP, UDP, the netlink of routes, and between tasks of this machine AF_UNIX with
//            SOCK_SEQPACKET. So neither MPTCP nor SCTP, which Landlock does not see, nor a stream
//            to a socket that has a path. A launcher and commands may have streams, too
//  sending   not with MSG_FASTOPEN, which connects without connect()
//  others    limits, processors and priorities of this process only; signals to itself only,
//            except for a launcher
//  files     no new modes but 0644 and 0755, no new dates except of open files
//
// A refused call fails with EPERM; a call that is newer than this list fails with ENOSYS, which
// libraries take for an older kernel. Neither is logged (SECCOMP_FILTER_FLAG_LOG): glibc tries
// clone3() for each thread, and a compromised process could fill the kernel's log. Throws
// std::bad_alloc.
[[nodiscard]] std::vector<sock_filter> filter_of_calls(ProcessKind kind);

}  // namespace disttf::roles
