// How much memory this process can still get, so that it refuses what does not fit before it takes
// any of it: the kernel ends a process, perhaps another one, that touches more than there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace disttf::roles {

// The least of what the machine has available (MemAvailable), what the limits of the process's
// control groups leave, and what its limit on address space (ulimit -v) leaves. nullopt: none of
// them is known. `root`: where proc and sys are.
[[nodiscard]] std::optional<std::uint64_t> available_memory_bytes(
    const std::filesystem::path& root = "/");

// Throws Failure (kError) where fewer than `bytes` are available, unless these are few (16 MiB):
// "`who` has not the memory for `what`: it takes 2295 MiB, and 1800 MiB are available".
void require_memory(std::uint64_t bytes, const std::string& who, const std::string& what);

}  // namespace disttf::roles
