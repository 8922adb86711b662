#include "run/process/confinement.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

namespace disttf::roles {
namespace {

// The leak detector stops the process by ptrace from one of its own threads at the end.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsTraced = true;
#else
constexpr bool kIsTraced = false;
#endif

bool filter_calls(ProcessKind kind) noexcept {
  try {
    std::vector<sock_filter> steps = filter_of_calls(kind);
    // The count fits: the kernel accepts 4096 steps at most.
    const sock_fprog program{.len = static_cast<std::uint16_t>(steps.size()),
                             .filter = steps.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  } catch (const std::exception&) {
    return false;  // out of memory
  }
}

}  // namespace

Confinement confine(ProcessKind kind) noexcept {
  Confinement made;
  // Without this the kernel accepts filters of privileged processes only.
  made.no_new_privileges = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  made.filters_calls = made.no_new_privileges && filter_calls(kind);
  return made;
}

bool keep_memory_private() noexcept { return !kIsTraced && prctl(PR_SET_DUMPABLE, 0) == 0; }

namespace call_filter {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

// Sanitizers make calls of their own that no list has.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasLists = false;
#else
constexpr bool kHasLists = true;
#endif

// Calls with higher numbers are newer than the list.
constexpr std::uint32_t kNewest = SYS_landlock_restrict_self;

// ---- Blocks: steps that end with an answer ----

using Block = std::vector<sock_filter>;

Block answer(std::uint32_t value) { return {BPF_STMT(BPF_RET | BPF_K, value)}; }
Block allow() { return answer(SECCOMP_RET_ALLOW); }
Block refuse(std::uint32_t error) { return answer(SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)); }

Block operator+(Block first, const Block& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

Block load(std::uint32_t offset) { return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)}; }
// The low half: these machines are little-endian, and the compared values have 32 bits.
Block load_argument(std::size_t number) {
  return load(
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t)));
}
Block load_high_argument(std::size_t number) {
  return load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                         number * sizeof(std::uint64_t) + sizeof(std::uint32_t)));
}

// Runs `then` if the loaded value compares so; otherwise goes on with the next step.
Block when(std::uint16_t comparison, std::uint32_t value, const Block& then) {
  assert(then.size() <= 255);  // the longest jump
  return Block{BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), value, 0,
                        static_cast<std::uint8_t>(then.size()))} +
         then;
}
Block when_equal(std::uint32_t value, const Block& then) { return when(BPF_JEQ, value, then); }

// Allows the call if that argument is one of the values.
Block allow_values(std::size_t argument, std::span<const std::uint32_t> values,
                   std::uint32_t error = EPERM) {
  Block made = load_argument(argument);
  for (const std::uint32_t value : values) made = std::move(made) + when_equal(value, allow());
  return std::move(made) + refuse(error);
}
Block allow_value(std::size_t argument, std::uint32_t value) {
  return allow_values(argument, std::array{value});
}
// Allows the call if that argument has none of the bits.
Block allow_without(std::size_t argument, std::uint32_t bits, std::uint32_t error = EPERM) {
  return load_argument(argument) + when(BPF_JSET, bits, refuse(error)) + allow();
}

// ---- Arguments of some calls ----

constexpr std::uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint32_t kTypeOfSocket = 0xf;  // the rest are flags

Block streams_of(std::span<const std::uint32_t> types) {
  Block made = load_argument(1) + Block{BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kTypeOfSocket)};
  for (const std::uint32_t type : types) made = std::move(made) + when_equal(type, allow());
  return std::move(made) + refuse(EPERM);
}

// Internet sockets: only the protocol that the type implies.
Block of_the_internet() {
  return load_argument(1) + Block{BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kTypeOfSocket)} +
         when_equal(SOCK_STREAM, allow_values(2, std::array<std::uint32_t, 2>{0, IPPROTO_TCP},
                                              EPROTONOSUPPORT)) +
         when_equal(SOCK_DGRAM, allow_values(2, std::array<std::uint32_t, 2>{0, IPPROTO_UDP},
                                             EPROTONOSUPPORT)) +
         refuse(EPROTONOSUPPORT);
}

Block rule_of_socket(bool has_streams_with_paths) {
  constexpr std::array<std::uint32_t, 2> kTypes = {SOCK_SEQPACKET, SOCK_STREAM};
  return load_argument(0) +
         when_equal(AF_UNIX, streams_of(std::span(kTypes).first(has_streams_with_paths ? 2 : 1))) +
         when_equal(AF_INET, of_the_internet()) + when_equal(AF_INET6, of_the_internet()) +
         when_equal(AF_NETLINK,
                    allow_values(2, std::array<std::uint32_t, 1>{NETLINK_ROUTE}, EPROTONOSUPPORT)) +
         refuse(EAFNOSUPPORT);
}

Block rule_of_prctl() {
  constexpr std::array<std::uint32_t, 9> kOptions = {
      PR_SET_NAME,      PR_GET_NAME,         PR_GET_DUMPABLE,
      PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS,
      PR_SET_SECCOMP,   PR_GET_SECCOMP,      PR_SET_CHILD_SUBREAPER};
  // Dumpable can only be switched off, since keep_memory_private() holds for good.
  return load_argument(0) + when_equal(PR_SET_DUMPABLE, allow_value(1, 0)) +
         allow_values(0, kOptions);
}

// Terminals, and non-blocking descriptors.
Block rule_of_ioctl() {
  return allow_values(1, std::array<std::uint32_t, 9>{FIONBIO, FIONREAD, FIOCLEX, TCGETS, TCSETS,
                                                      TCSETSW, TCSETSF, TIOCGWINSZ, TIOCGPGRP});
}

// A path may be null only, so that the call concerns an open file, as futimens() does: Landlock
// does not check the times of files. Both halves of the pointer are compared.
Block allow_null(std::size_t argument) {
  return load_high_argument(argument) + when_equal(0, allow_value(argument, 0)) + refuse(EPERM);
}

// A task starts threads, but no processes.
Block rule_of_clone(bool starts_processes) {
  if (starts_processes) return allow_without(0, kNewNamespaces);
  return load_argument(0) + when(BPF_JSET, CLONE_THREAD, allow_without(0, kNewNamespaces)) +
         refuse(EPERM);
}

// Returns the rule of a call of the list.
Block rule_of(int call, ProcessKind kind) {
  const bool is_launcher = kind == ProcessKind::kLauncher;
  // The filter is made in the process that it restricts, so this is the pid that it may signal.
  const auto self = static_cast<std::uint32_t>(getpid());
  switch (call) {
    // MSG_FASTOPEN connects without connect(), so Landlock's rule for ports would not apply.
    case SYS_sendto:
      return allow_without(3, MSG_FASTOPEN);
    case SYS_sendmsg:
      return allow_without(2, MSG_FASTOPEN);
    case SYS_sendmmsg:
      return allow_without(3, MSG_FASTOPEN);
    case SYS_socket:
      return rule_of_socket(is_launcher || kind == ProcessKind::kCommand);
    // Its flags lie in memory, which a filter cannot read; libraries use clone() instead.
    case SYS_clone3:
      return refuse(ENOSYS);
    case SYS_clone:
      return rule_of_clone(is_launcher);
    case SYS_prctl:
      return rule_of_prctl();
    case SYS_ioctl:
      return rule_of_ioctl();
    // Pid 0 is the process itself.
    case SYS_prlimit64:
    case SYS_sched_setaffinity:
      return allow_value(0, 0);
    case SYS_setpriority:
    case SYS_getpriority:
      return load_argument(0) + when_equal(PRIO_PROCESS, allow_value(1, 0)) + refuse(EPERM);
    case SYS_kill:
    case SYS_tgkill:
      return is_launcher ? allow() : allow_value(0, self);
    // Only modes that files and directories of disttf have, so no setuid bit.
    case SYS_fchmod:
      return allow_values(1, std::array<std::uint32_t, 2>{0644, 0755});
    case SYS_utimensat:
      return allow_null(1);
    default:
      return allow();
  }
}

// ---- Whole programs ----

Block beginning() {
  Block made = load(offsetof(seccomp_data, arch)) +
               Block{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0)} +
               refuse(EPERM);  // calls of another architecture have other numbers
  made = std::move(made) + load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  constexpr std::uint32_t kX32 = 0x40000000;  // the same calls again, numbered from here on
  made = std::move(made) + when(BPF_JGE, kX32, refuse(ENOSYS));
#endif
  return made;
}

Block allow_listed(ProcessKind kind) {
  Block made = beginning();
  // The kernel runs the comparisons in order at each call, so the list has the frequent calls
  // first.
  for (const SystemCall& call : system_calls()) {
    if (call.is_of(kind)) {
      made = std::move(made) +
             when_equal(static_cast<std::uint32_t>(call.number), rule_of(call.number, kind));
    }
  }
  // ENOSYS for newer calls, so that libraries fall back to older ones.
  return std::move(made) + when(BPF_JGT, kNewest, refuse(ENOSYS)) + refuse(EPERM);
}

constexpr std::array kTracing = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};

constexpr std::array kForbidden = {
    // other processes, and their descriptors
    SYS_kcmp, SYS_pidfd_getfd, SYS_perf_event_open,
    // code in the kernel, and ways around this filter
    SYS_bpf, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_userfaultfd,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_personality,
    // the file system as a whole
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_quotactl,
    SYS_mknodat, SYS_open_by_handle_at, SYS_fanotify_init, SYS_fsopen, SYS_fsmount, SYS_fspick,
    SYS_move_mount, SYS_open_tree, SYS_mount_setattr,
    // other namespaces, other users, the kernel's keys
    SYS_setns, SYS_unshare, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid,
    SYS_setresgid, SYS_setgroups, SYS_capset, SYS_add_key, SYS_request_key, SYS_keyctl,
    // the machine
    SYS_reboot, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_sethostname, SYS_setdomainname, SYS_acct, SYS_syslog, SYS_vhangup};

constexpr std::array kFamilies = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

Block forbid(std::span<const int> calls) {
  Block made;
  for (const int call : calls) {
    made = std::move(made) + when_equal(static_cast<std::uint32_t>(call), refuse(EPERM));
  }
  return made;
}

// For processes whose calls are not all known: other programs, and builds with a sanitizer.
Block allow_all_but_some(ProcessKind kind) {
  Block families = load_argument(0);
  for (const int family : kFamilies) {
    families = std::move(families) + when_equal(static_cast<std::uint32_t>(family), allow());
  }
  Block made = beginning();
  // Only a launcher, and the programs that it starts, start programs.
  if (kind != ProcessKind::kPrograms && kind != ProcessKind::kLauncher) {
    made = std::move(made) + forbid(std::array{SYS_execve, SYS_execveat});
  }
  if (!kIsTraced) made = std::move(made) + forbid(kTracing);
  return std::move(made) + forbid(kForbidden) + when_equal(SYS_clone3, refuse(ENOSYS)) +
         when_equal(SYS_clone, allow_without(0, kNewNamespaces)) +
         // Characters pushed into a terminal as if a user had typed them.
         when_equal(SYS_ioctl, load_argument(1) + when_equal(TIOCSTI, refuse(EPERM)) + allow()) +
         when_equal(SYS_socket, std::move(families) + refuse(EAFNOSUPPORT)) + allow();
}

}  // namespace
}  // namespace call_filter

std::vector<sock_filter> filter_of_calls(ProcessKind kind) {
  return call_filter::kHasLists && kind != ProcessKind::kPrograms
             ? call_filter::allow_listed(kind)
             : call_filter::allow_all_but_some(kind);
}

}  // namespace disttf::roles
