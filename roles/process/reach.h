// What of this machine a process may reach: the files, folders and TCP ports that it was told of,
// and no others (Landlock, landlock(7)). Confinement (confinement.h) is about system calls.
//
// It holds for the thread that gives the rest up and for those that it starts, for good; so this
// comes before there is a second one. What is open already stays so: sockets that listen, standard
// output. Memory that tasks share, sockets within the machine and UDP are not affected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace disttf::roles {

struct Reach {
  // Files, or folders with all below them. What is not there is left out: it cannot be reached
  // when it comes to be there later.
  std::vector<std::filesystem::path> read = {};
  std::vector<std::filesystem::path> changed = {};  // read, written, made anew and removed
  // TCP ports. 0: one that the system chooses. nullopt: any.
  std::optional<std::vector<std::uint16_t>> listens_on = std::nullopt;
  std::optional<std::vector<std::uint16_t>> connects_to = std::nullopt;
};

// What there is of it. Kernels have it by and by: files from version 2 on (Linux 5.19), ports from
// 4 on (6.7), signals, which then reach no process but those it starts, from 6 on (6.12).
struct ReachInForce {
  int version = 0;  // of the kernel's Landlock, the ABI; 0: none, or a container forbids it
  bool is_in_force = false;
  [[nodiscard]] bool has_ports() const noexcept { return is_in_force && version >= 4; }
  [[nodiscard]] bool has_signals() const noexcept { return is_in_force && version >= 6; }
};

// From now on nothing but `reach` is within it. REQUIRES: confine() has been called, as the kernel
// wants no_new_privs. Never fails: a kernel that has less gives less; says what is in force.
ReachInForce keep_within(const Reach& reach) noexcept;

// Whether it would be, tried in a thread that ends at once.
[[nodiscard]] ReachInForce try_keep_within();

}  // namespace disttf::roles
