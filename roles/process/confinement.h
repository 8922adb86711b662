// What a process of this file gives up before it reads a byte of a peer's, or of a file's: so that
// whoever finds a way to make it do something finds little to do.
//
//   - no_new_privs: nothing that it runs has more rights than it (prctl(2))
//   - a filter of system calls (seccomp(2)), with a list of its own for each kind of process
//     (call_filter.h). A call that is not on the list fails with EPERM
//
// What keeps it from files and addresses is reach.h.
#pragma once

#include "roles/process/system_calls.h"

namespace disttf::roles {

struct Confinement {
  bool no_new_privileges = false;
  bool filters_calls = false;  // false: this kernel, or this container, has no seccomp
};

// From now on, for this thread and those that it starts, and for good; so call it before there is a
// second one. What a launcher starts inherits its filter, and confines itself further. Says what is
// in force. Never fails: a kernel that has less gives less.
Confinement confine(ProcessKind kind) noexcept;

// For good, of a process that is about to read a secret: it leaves no core dump, and to other
// processes of its user its memory, environment and descriptors are closed (PR_SET_DUMPABLE), but
// for root's. A program that it starts begins without that. False: it is not so.
bool keep_memory_private() noexcept;

}  // namespace disttf::roles
