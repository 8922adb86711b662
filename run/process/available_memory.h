// How much memory this process can still get. What does not fit is refused before any of it is
// taken: if a process touches more than there is, the kernel kills a process, perhaps another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace disttf::roles {

// Returns the lowest of: what the machine has available (MemAvailable), what the limits of the
// process's control groups leave, and what its limit on address space (ulimit -v) leaves. nullopt
// if none is known. `root`: where proc and sys are.
[[nodiscard]] std::optional<std::uint64_t> available_memory_bytes(
    const std::filesystem::path& root = "/");

// Throws Failure (kError) if fewer than `bytes` are available, unless these are few (16 MiB):
// "`who` does not have the memory for `what`: it takes 2295 MiB, and 1800 MiB are available".
void require_memory(std::uint64_t bytes, const std::string& who, const std::string& what);

}  // namespace disttf::roles
