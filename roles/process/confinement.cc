#include "roles/process/confinement.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace disttf::roles {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

// The leak detector stops the process by one of its own threads when that ends.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsTraced = true;
#else
constexpr bool kIsTraced = false;
#endif

constexpr std::array kPrograms = {SYS_execve, SYS_execveat};

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

constexpr std::uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// A program of the kernel's packet filter, whose packet is the call. It answers with what is to
// become of that. Most calls take the same way through it whatever their arguments, and are looked
// up in a table of the kernel's after the first (Linux 5.11): they cost nothing then.
class Filter {
 public:
  explicit Filter(bool starts_programs) {
    load(offsetof(seccomp_data, arch));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0));
    refuse(EPERM);  // calls of another machine have other numbers
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    constexpr std::uint32_t kX32 = 0x40000000;  // the same calls once more, numbered from here on
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
    refuse(ENOSYS);
#endif
    if (!starts_programs) forbid(kPrograms);
    if (!kIsTraced) forbid(kTracing);
    forbid(kForbidden);
    // Its flags lie in memory, where no filter can see them; the C library does without it then.
    when(SYS_clone3, 1);
    refuse(ENOSYS);
    when(SYS_clone, 4);
    load(argument(0));
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1));
    refuse(EPERM);
    allow();
    when(SYS_ioctl, 4);  // words put into a terminal as if somebody had typed them
    load(argument(1));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 0, 1));
    refuse(EPERM);
    allow();
    when(SYS_socket, kFamilies.size() + 3);
    load(argument(0));
    for (std::size_t each = 0; each < kFamilies.size(); ++each) {
      const auto to_allow = static_cast<std::uint8_t>(kFamilies.size() - each);
      add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(kFamilies.at(each)),
                   to_allow, 0));
    }
    refuse(EAFNOSUPPORT);
    allow();
    allow();
  }

  [[nodiscard]] bool install() noexcept {
    const sock_fprog program{.len = static_cast<std::uint16_t>(size_), .filter = steps_.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  // The low half of it: the machines are little-endian, and what is compared has 32 bits.
  static constexpr std::uint32_t argument(std::size_t number) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                      number * sizeof(std::uint64_t));
  }
  void add(const sock_filter& step) { steps_.at(size_++) = step; }
  void load(std::uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void allow() { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)); }
  void refuse(std::uint32_t error) {
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)));
  }
  // The next `steps` steps are for that call alone. REQUIRES: its number is loaded.
  void when(long call, std::size_t steps) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0,
                 static_cast<std::uint8_t>(steps)));
  }
  template <std::size_t kCount>
  void forbid(const std::array<int, kCount>& calls) {
    for (const int call : calls) {
      when(call, 1);
      refuse(EPERM);
    }
  }

  std::array<sock_filter, 192> steps_{};
  std::size_t size_ = 0;
};

}  // namespace

Confinement confine(bool starts_programs) noexcept {
  Confinement made;
  made.no_new_privileges = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  made.filters_calls = made.no_new_privileges && Filter(starts_programs).install();
  return made;
}

bool keep_memory_private() noexcept { return !kIsTraced && prctl(PR_SET_DUMPABLE, 0) == 0; }

}  // namespace disttf::roles
