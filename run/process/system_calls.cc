#include "run/process/system_calls.h"

#include <sys/syscall.h>

#include <array>

namespace disttf::roles {
namespace system_call_table {
namespace {

constexpr std::uint8_t bit(ProcessKind kind) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
}
constexpr std::uint8_t kPs = bit(ProcessKind::kPs);
constexpr std::uint8_t kTrainer = bit(ProcessKind::kTrainer);
constexpr std::uint8_t kEvaluator = bit(ProcessKind::kEvaluator);
constexpr std::uint8_t kServe = bit(ProcessKind::kServe);
constexpr std::uint8_t kCommand = bit(ProcessKind::kCommand);
// Its tasks inherit its filter, so it has all of their calls.
constexpr std::uint8_t kLauncher = bit(ProcessKind::kLauncher);

constexpr std::uint8_t kTasks = kPs | kTrainer | kEvaluator | kLauncher;
constexpr std::uint8_t kServers = kTasks | kServe;
constexpr std::uint8_t kAll = kServers | kCommand;

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the number and the name of one word.
#define CALL(name, ...) \
  SystemCall { SYS_##name, #name, __VA_ARGS__ }

constexpr std::array kCalls = {
    // The calls of a training step; first those whose arguments are checked.
    CALL(sendto, kAll, "data that is sent"),
    CALL(sendmsg, kAll, "data that is sent, and memory that is handed over"),
    CALL(recvfrom, kAll, "data that comes"),
    CALL(futex, kAll),
#if defined(__x86_64__)
    CALL(epoll_wait, kAll, "a wait for connections and timers"),
    CALL(poll, kAll, "a wait for a connection or a signal"),
#endif
    CALL(sched_yield, kAll, "a thread that waits for a lock or for memory"),
    CALL(timerfd_settime, kAll, "a deadline"),
    CALL(recvmsg, kAll, "memory that is handed over, and answers to questions for names"),
    CALL(read, kAll),
    CALL(write, kAll),
    // Waiting.
    CALL(epoll_ctl, kAll, "a wait for connections and timers"),
    CALL(epoll_create1, kAll, "a wait for connections and timers"),
    CALL(eventfd2, kAll, "what wakes such a wait"),
    CALL(timerfd_create, kAll, "a deadline"),
    CALL(signalfd4, kAll, "signals that a thread reads"),
    CALL(epoll_pwait, kAll, "epoll_wait() of aarch64"),
    CALL(epoll_pwait2, kAll, "epoll_wait() of other versions of the library"),
    CALL(ppoll, kAll, "poll() of aarch64, and of fortified callers"),
    CALL(pselect6, kAll, "select() of aarch64"),
    CALL(nanosleep, kAll, "a pause between two attempts"),
    CALL(clock_nanosleep, kAll, "a pause between two attempts"),
    CALL(restart_syscall, kAll, "the kernel makes it when a stopped process goes on"),
    // Memory.
    CALL(brk, kAll),
    CALL(mmap, kAll),
    CALL(munmap, kAll),
    CALL(mprotect, kAll, "the stack of a thread, and memory of malloc()"),
    CALL(madvise, kAll, "memory that is given back"),
    CALL(mremap, kAll, "realloc() of large memory"),
    CALL(memfd_create, kServers | kCommand, "memory that tasks share"),
    CALL(fallocate, kServers | kCommand, "memory that tasks share"),
    CALL(membarrier, kAll, "a fence over all threads, in other versions of the library"),
    // Threads, signals, and process identity.
    CALL(clone, kAll, "a thread"),
    CALL(clone3, kAll, "a thread; the library takes clone() instead"),
    CALL(set_robust_list, kAll, "a thread"),
    CALL(rseq, kAll, "a thread"),
    CALL(exit, kAll, "the end of a thread"),
    CALL(exit_group, kAll),
    CALL(gettid, kAll, "which thread this is"),
    CALL(getpid, kAll, "which process this is"),
    CALL(getppid, kAll, "whether the parent has ended"),
    CALL(getpgid, kAll, "whether a terminal is this process's"),
    CALL(rt_sigaction, kAll),
    CALL(rt_sigprocmask, kAll, "a thread that takes no signals"),
    CALL(rt_sigreturn, kAll, "the end of every handler of a signal"),
    CALL(rt_sigtimedwait, kAll, "a wait for a signal"),
    CALL(rt_sigsuspend, kAll, "a wait for a signal"),
    CALL(rt_sigpending, kAll, "a look at the signals that wait"),
    CALL(sigaltstack, kAll, "a stack for the handler of a crash"),
    CALL(tgkill, kAll, "abort() and raise()"),
    CALL(sched_getaffinity, kAll, "how many processors there are"),
    CALL(sched_setaffinity, kAll, "a trainer leaves a processor that it shares; launch --cpus"),
    CALL(getpriority, kAll, "threads in the background"),
    CALL(setpriority, kAll, "threads in the background"),
    CALL(prctl, kAll, "the name of a thread; no core dump once a secret is read"),
    CALL(set_tid_address, kLauncher, "the start of a task"),
    CALL(uname, kAll, "what the machine is called"),
    CALL(getrusage, kAll, "the resource usage of the process"),
    CALL(sysinfo, kAll, "how much memory the machine has"),
    CALL(prlimit64, kAll, "how much memory and how many descriptors there may be"),
    CALL(getrlimit, kAll, "prlimit64() of other libraries"),
    CALL(setrlimit, kLauncher, "prlimit64() of other libraries"),
    CALL(getcpu, kAll, "on which processor a thread runs, without a vDSO"),
    CALL(clock_gettime, kAll, "what time it is, without a vDSO"),
    CALL(clock_getres, kAll, "how exact a clock is, without a vDSO"),
    CALL(gettimeofday, kAll, "what time it is, without a vDSO"),
    CALL(times, kAll, "how much processor time was used"),
    CALL(getrandom, kAll, "keys, tokens and names"),
    CALL(getuid, kAll, "whose files these are"),
    CALL(geteuid, kAll, "whose sockets these are"),
    CALL(getgid, kAll, "whose files these are"),
    CALL(getegid, kAll, "whose files these are"),
    CALL(seccomp, kAll, "filters are added and never taken away"),
    CALL(landlock_create_ruleset, kServers | kCommand, "what a task reaches"),
    CALL(landlock_add_rule, kServers | kCommand, "what a task reaches"),
    CALL(landlock_restrict_self, kServers | kCommand, "what a task reaches"),
    // Files. Landlock decides which ones (sandbox.h).
    CALL(openat, kAll),
    CALL(close, kAll),
    CALL(newfstatat, kAll),
    CALL(fstat, kAll, "newfstatat() of other versions of the library"),
    CALL(statx, kAll, "newfstatat() of other versions of the library"),
    CALL(statfs, kAll, "whether a folder is of a network's file system"),
    CALL(fstatfs, kAll, "whether a file is of a network's file system"),
    CALL(lseek, kAll, "where a file is read"),
    CALL(fcntl, kAll),
    CALL(getdents64, kAll, "what is in a folder"),
    CALL(pread64, kAll, "a part of a file"),
    CALL(preadv, kAll, "one read to several places"),
    CALL(pwrite64, kAll, "a part that is written in the middle of a file"),
    CALL(pwritev, kAll, "one write from several places"),
    CALL(readv, kAll, "one read to several places"),
    CALL(writev, kAll, "one write from several places"),
    CALL(faccessat, kAll, "access() of aarch64"),
    CALL(faccessat2, kAll, "access() of aarch64"),
    CALL(readlinkat, kAll, "readlink() of aarch64"),
    CALL(getcwd, kAll, "a path in full"),
    CALL(mkdirat, kAll, "mkdir() of aarch64"),
    CALL(renameat, kAll, "rename() of aarch64"),
    CALL(renameat2, kAll, "rename() of other versions of the library"),
    CALL(unlinkat, kAll, "unlink() of aarch64, and the removal of whole folders"),
    CALL(linkat, kTasks | kCommand, "the mark of the best checkpoint"),
    CALL(ftruncate, kAll, "a download that begins anew"),
    CALL(fsync, kAll, "a file that has to stay"),
    CALL(fdatasync, kAll, "a download that has come whole"),
    CALL(flock, kTasks | kCommand, "a folder in which several tasks want the same"),
    CALL(fchmod, kTasks | kCommand, "a file or folder that others may read, once it is whole"),
    CALL(utimensat, kTasks | kCommand, "a copy has the date of what it is a copy of"),
    CALL(copy_file_range, kTasks | kCommand, "a copy of a file"),
    CALL(sendfile, kTasks | kCommand, "a copy of a file"),
    CALL(umask, kLauncher, "the mode of the control socket"),
    CALL(pipe2, kAll, "a signal's way to its thread"),
    CALL(dup, kAll, "a descriptor for a second owner"),
    CALL(dup3, kAll, "a descriptor at a number of its own"),
    CALL(close_range, kLauncher, "what a task must not inherit"),
    CALL(ioctl, kAll, "a descriptor that does not block; the width of a terminal"),
    // The network.
    CALL(socket, kAll, "a connection"),
    CALL(connect, kAll, "a connection to another task"),
    CALL(bind, kAll, "an address of its own"),
    CALL(listen, kAll, "an address of its own"),
    CALL(accept, kAll, "a connection to an address for people and their tools"),
    CALL(accept4, kAll, "a connection of another task"),
    CALL(getsockname, kAll, "an address of its own"),
    CALL(getpeername, kAll, "whom a connection is with"),
    CALL(getsockopt, kAll, "whom a connection is with, and whether one has come about"),
    CALL(setsockopt, kAll, "how a connection sends"),
    CALL(shutdown, kAll, "the end of what is sent"),
    CALL(sendmmsg, kAll, "both questions for the addresses of a name"),
    CALL(recvmmsg, kAll, "answers to several questions at once"),
    // Processes, only for programs that start tasks.
    CALL(execve, kLauncher),
    CALL(execveat, kLauncher, "execve() of a file without a name"),
    CALL(wait4, kLauncher),
    CALL(waitid, kLauncher, "the end of a process that a task has left"),
    CALL(setpgid, kLauncher),
    CALL(kill, kTrainer | kLauncher, "the end of a task; a chief stops itself for its page"),
    CALL(rt_sigqueueinfo, kLauncher, "a timeline that a person asks for"),
#if defined(__x86_64__)
    // Calls that other processors have only under other names.
    CALL(arch_prctl, kAll, "leave to use the tiles of AMX; the start of a thread's storage"),
    CALL(access, kAll, "whether a file of the system is there"),
    CALL(open, kAll, "openat() of other libraries"),
    CALL(stat, kAll, "newfstatat() of other libraries"),
    CALL(lstat, kAll, "newfstatat() of other libraries"),
    CALL(readlink, kAll, "where a link leads"),
    CALL(mkdir, kAll, "a folder for what is written"),
    CALL(rename, kAll, "a file that takes the place of another"),
    CALL(unlink, kAll, "a file that is wanted no more"),
    CALL(rmdir, kAll, "a folder that is wanted no more"),
    CALL(link, kTasks | kCommand, "the mark of the best checkpoint"),
    CALL(select, kAll, "a wait of other libraries"),
    CALL(pause, kAll, "a wait for a signal"),
    CALL(getpgrp, kAll, "whether a terminal is this process's"),
    CALL(dup2, kAll, "a descriptor at a number of its own"),
    CALL(time, kAll, "what time it is, without a vDSO"),
    CALL(fork, kLauncher, "the start of a task by other libraries"),
    CALL(vfork, kLauncher, "the start of a task by other libraries"),
#endif
};

#undef CALL

}  // namespace
}  // namespace system_call_table

std::string_view name_of(ProcessKind kind) noexcept {
  constexpr std::array<std::string_view, kListedKinds + 1> kNames = {
      "ps", "trainer", "evaluator", "serve", "command", "launcher", "programs"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const SystemCall> system_calls() noexcept { return system_call_table::kCalls; }

}  // namespace disttf::roles
