// What a process of this file gives up before it reads a byte of a peer's, or of a file's: so that
// whoever finds a way to make it do something finds little to do.
//
//   - no_new_privs: nothing that it runs has more rights than it (prctl(2))
//   - a filter of system calls (seccomp(2)): none that a task has no use for, such as to run a
//     program, look into another process, load code into the kernel, mount, or open a socket that
//     is neither of IP, of this machine (AF_UNIX), nor netlink's (by which names are looked up).
//     A call that is refused fails with EPERM, as if a kernel had it switched off
//
// What keeps it from files and addresses is reach.h.
#pragma once

namespace disttf::roles {

struct Confinement {
  bool no_new_privileges = false;
  bool filters_calls = false;  // false: this kernel, or this container, has no seccomp
};

// From now on, for this thread and those that it starts, and for good; so call it before there is a
// second one. `starts_programs`: tasks are to be started by it; they confine themselves further.
// Says what is in force. Never fails: a kernel that has less gives less.
Confinement confine(bool starts_programs) noexcept;

// For good, of a process that is about to read a secret: it leaves no core dump, and to other
// processes of its user its memory, environment and descriptors are closed (PR_SET_DUMPABLE), but
// for root's. A program that it starts begins without that. False: it is not so.
bool keep_memory_private() noexcept;

}  // namespace disttf::roles
