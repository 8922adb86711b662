#include "run/process/confinement.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdint>
#include <exception>

#include "run/process/call_filter.h"

namespace disttf::roles {
namespace {

// The leak detector attaches to the process from one of its own threads at the end.
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

}  // namespace disttf::roles
