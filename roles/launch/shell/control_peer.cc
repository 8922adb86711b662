#include "roles/launch/shell/control_peer.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace disttf::roles {
namespace {

// Longer chains do not occur; the bound ends the loop if pids are reused meanwhile.
constexpr int kMostAncestors = 1000;

// The parent of a process: 0 if that is outside of this PID namespace. nullopt: /proc does not show
// the process.
std::optional<pid_t> parent_process_of(pid_t pid, const std::filesystem::path& proc) {
  std::ifstream file(proc / std::to_string(pid) / "stat");
  std::string line;
  std::getline(file, line);
  // "4711 (a name) with ) in it) S 4710 ...": the name ends with the last parenthesis.
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(end_of_name + 1));
  char state = 0;
  pid_t parent = 0;
  return fields >> state >> parent ? std::optional(parent) : std::nullopt;
}

}  // namespace

std::optional<std::string> why_refused(const net::LocalPeer& peer,
                                       const std::filesystem::path& proc) {
  // Root can read this process's memory anyway, so it is not refused.
  if (const uid_t own = geteuid(); peer.uid != own && peer.uid != 0) {
    return fmt::format("user {} may not use this control address; allowed are user {} and root",
                       peer.uid, own);
  }
  const pid_t launch = getpid();
  pid_t each = peer.pid;
  for (int steps = 0; steps < kMostAncestors && each > 0; ++steps) {
    const std::optional<pid_t> parent = parent_process_of(each, proc);
    if (!parent) {
      return fmt::format("access denied: /proc does not show the parent of process {}", peer.pid);
    }
    // Tasks run as the same user, so the uid alone does not stop a compromised one.
    if (*parent == launch) {
      return fmt::format(
          "process {} was started by this launch or by one of its tasks, which may not use its "
          "control address",
          peer.pid);
    }
    if (*parent == 1) break;  // process 1 is not a descendant of this launch
    // An orphan of a task is found as well: keep_orphans() makes this process its parent.
    each = *parent;
  }
  return std::nullopt;
}

void keep_orphans() noexcept { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

}  // namespace disttf::roles
