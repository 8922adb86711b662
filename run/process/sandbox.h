// The sandbox: the files, folders and TCP ports of this machine that a process may use are those on
// its allow-list, and no others (Landlock, landlock(7)). For system calls see confinement.h.
//
// It applies for good to the thread that enters it and to those that it starts, so it must be
// entered before there is a second thread. What is open already stays open: listening sockets,
// standard output. Memory shared by tasks, sockets within the machine and UDP are not affected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace disttf::roles {

struct SandboxPolicy {
  // Files, or folders with everything below them. Paths that do not exist are skipped, and stay
  // unusable if they are created later.
  std::vector<std::filesystem::path> read = {};
  std::vector<std::filesystem::path> changed = {};  // read, written, created and removed
  // TCP ports. 0: one chosen by the system. nullopt: any.
  std::optional<std::vector<std::uint16_t>> listens_on = std::nullopt;
  std::optional<std::vector<std::uint16_t>> connects_to = std::nullopt;
};

// What the kernel supports: files from version 2 on (Linux 5.19), ports from 4 on (6.7), and from 6
// on (6.12) signals, which then reach only processes that it starts.
struct SandboxStatus {
  int version = 0;  // of the kernel's Landlock ABI; 0: none, or a container forbids it
  bool is_in_force = false;
  [[nodiscard]] bool has_ports() const noexcept { return is_in_force && version >= 4; }
  [[nodiscard]] bool has_signals() const noexcept { return is_in_force && version >= 6; }
};

// Enters the sandbox: from now on only `policy` is usable. Never fails: an older kernel supports
// less. Returns what is in force. REQUIRES: confine() has been called, as the kernel requires
// no_new_privs.
SandboxStatus enforce_sandbox(const SandboxPolicy& policy) noexcept;

// Returns whether it would take effect, tried in a thread that ends at once.
[[nodiscard]] SandboxStatus probe_sandbox();

}  // namespace disttf::roles
