// What a process gives up before it reads a byte from a peer or a file, so that an attacker who
// controls it can do little.
//
//  - no_new_privs: no program that it runs has more rights (prctl(2))
//  - a filter of system calls (seccomp(2)), with a list for each kind of process (call_filter.h).
//    A call that is not on the list fails with EPERM
//
// For files and addresses see sandbox.h.
#pragma once

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

}  // namespace disttf::roles
