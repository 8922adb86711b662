#include "run/process/sandbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "data/file.h"

namespace disttf::roles {
namespace {

// The kernel's constants, from its include/uapi/linux/landlock.h: the header of the build machine
// may be older than the kernel at run time, or missing.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;

constexpr std::uint32_t kAskVersion = 1;
constexpr int kBeneathAPath = 1;
constexpr int kOfAPort = 2;

constexpr std::uint64_t kWriteFile = 1U << 1U;
constexpr std::uint64_t kReadFile = 1U << 2U;
constexpr std::uint64_t kReadFolder = 1U << 3U;
constexpr std::uint64_t kRemoveFolder = 1U << 4U;
constexpr std::uint64_t kRemoveFile = 1U << 5U;
constexpr std::uint64_t kMakeFolder = 1U << 7U;
constexpr std::uint64_t kMakeFile = 1U << 8U;
constexpr std::uint64_t kMove = 1U << 13U;      // from one folder to another; version 2
constexpr std::uint64_t kTruncate = 1U << 14U;  // version 3
// All of these rights are given up, except those that a path is granted; executing files is one of
// them.
constexpr std::uint64_t kAllOfFiles = (1U << 14U) - 1;
constexpr std::uint64_t kBind = 1U << 0U;
constexpr std::uint64_t kConnect = 1U << 1U;
constexpr std::uint64_t kSignals = 1U << 1U;

constexpr int kHasMoves = 2;  // without, no file could be moved at all
constexpr int kHasTruncation = 3;
constexpr int kHasPorts = 4;
constexpr int kHasScopes = 6;

// Kernels accept a shorter struct than theirs, and a longer one that ends in zeros.
struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t ports = 0;
  std::uint64_t scoped = 0;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};
struct PortRule {
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

// A sandbox being made. Once a step has failed the rest is skipped, and it restricts nothing.
class Domain {
 public:
  Domain(int version, const SandboxPolicy& policy) noexcept {
    ruleset_.files = kAllOfFiles | (version >= kHasTruncation ? kTruncate : 0);
    // A kernel rejects rights that it does not have, so only those of its version are listed.
    if (version >= kHasPorts) {
      ruleset_.ports = (policy.listens_on ? kBind : 0) | (policy.connects_to ? kConnect : 0);
    }
    ruleset_.scoped = version >= kHasScopes ? kSignals : 0;
    fd_ = data::FileDescriptor(
        static_cast<int>(syscall(kCreateRuleset, &ruleset_, sizeof(ruleset_), 0)));
    is_whole_ = fd_.is_open();
  }

  void allow_reading(const std::filesystem::path& path) noexcept {
    allow(path, kReadFile | kReadFolder);
  }
  void allow_changing(const std::filesystem::path& path) noexcept {
    allow(path, kReadFile | kReadFolder | kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder |
                    kMakeFile | kMove | kTruncate);
  }
  void allow_listening(std::uint16_t port) noexcept { allow(port, kBind); }
  void allow_connecting(std::uint16_t port) noexcept { allow(port, kConnect); }

  [[nodiscard]] bool enter() noexcept {
    return is_whole_ && syscall(kRestrictSelf, fd_.number(), 0) == 0;
  }

 private:
  void allow(const std::filesystem::path& path, std::uint64_t rights) noexcept {
    // O_PATH, since a rule needs no right to read the path.
    const data::FileDescriptor at(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!at.is_open() || fstat(at.number(), &status) != 0) {
      return;  // opening it later reports the reason
    }
    // The kernel rejects a rule that gives a file the rights of a directory.
    constexpr std::uint64_t kOfAFile = kReadFile | kWriteFile | kTruncate;
    const PathRule rule{.allowed = rights & ruleset_.files &
                                   (S_ISDIR(status.st_mode) ? ~std::uint64_t{0} : kOfAFile),
                        .parent = at.number()};
    // EBADFD: a pipe or a socket, for which kernels neither accept nor need a rule.
    const bool is_added = add(kBeneathAPath, &rule) || errno == EBADFD;
    // All or nothing: with a rule missing the task would later fail at a path that it needs.
    is_whole_ = is_whole_ && is_added;
  }
  void allow(std::uint16_t port, std::uint64_t right) noexcept {
    if ((ruleset_.ports & right) != 0) {
      const PortRule rule{.allowed = right, .port = port};
      is_whole_ = add(kOfAPort, &rule) && is_whole_;
    }
  }
  [[nodiscard]] bool add(int kind, const void* rule) noexcept {
    return syscall(kAddRule, fd_.number(), kind, rule, 0) == 0;
  }

  Ruleset ruleset_;
  data::FileDescriptor fd_;
  bool is_whole_ = false;
};

}  // namespace

SandboxStatus enforce_sandbox(const SandboxPolicy& policy) noexcept {
  SandboxStatus made;
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  made.version = version > 0 ? static_cast<int>(version) : 0;
  // Below version 2 a sandbox would forbid every move of a file, which saving needs.
  if (made.version < kHasMoves) {
    return made;
  }
  Domain domain(made.version, policy);
  for (const auto& path : policy.read) domain.allow_reading(path);
  for (const auto& path : policy.changed) domain.allow_changing(path);
  if (policy.listens_on) {
    for (const std::uint16_t port : *policy.listens_on) domain.allow_listening(port);
  }
  if (policy.connects_to) {
    for (const std::uint16_t port : *policy.connects_to) domain.allow_connecting(port);
  }
  made.is_in_force = domain.enter();
  return made;
}

SandboxStatus probe_sandbox() {
  SandboxStatus made;
  // On a thread of its own, since a sandbox cannot be left again.
  std::thread([&made] {
    made = enforce_sandbox({});
    made.is_in_force =
        made.is_in_force && !data::FileDescriptor(open("/", O_RDONLY | O_CLOEXEC)).is_open();
  }).join();
  return made;
}

}  // namespace disttf::roles
