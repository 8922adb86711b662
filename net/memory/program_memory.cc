#include "net/memory/program_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "net/waiting/last_error.h"

namespace disttf::net {
namespace {

[[noreturn]] void fail(std::size_t bytes) {
  throw std::system_error(
      last_error(), "cannot share " + std::to_string(bytes) + " bytes of memory with the program");
}

// A mapping of no bytes is an error.
std::size_t bytes_of(std::size_t floats) {
  return std::max<std::size_t>(floats, 1) * sizeof(float);
}

void seal(int fd, ProgramMemory::Access access) noexcept {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  // An old kernel has no seal against writing; the program then could, and would harm itself.
  if (access == ProgramMemory::Access::kRead &&
      fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) {
    return;
  }
  static_cast<void>(fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_SEAL));
}

}  // namespace

ProgramMemory::ProgramMemory(std::size_t floats, Access access)
    : descriptor_(memfd_create("disttf-program", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const std::size_t bytes = bytes_of(floats);
  // fallocate() and not ftruncate(): memory that is missing is found out here, not by a signal
  // later.
  if (!descriptor_.is_open() ||
      fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    fail(bytes);
  }
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.number(), 0);
  if (address == MAP_FAILED) {
    fail(bytes);
  }
  floats_ = {static_cast<float*>(address), floats};
  // After the mapping of this process, which goes on to write.
  seal(descriptor_.number(), access);
}

ProgramMemory::~ProgramMemory() { unmap(); }

ProgramMemory::ProgramMemory(ProgramMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), floats_(std::exchange(other.floats_, {})) {}

ProgramMemory& ProgramMemory::operator=(ProgramMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    descriptor_ = std::move(other.descriptor_);
    floats_ = std::exchange(other.floats_, {});
  }
  return *this;
}

void ProgramMemory::unmap() noexcept {
  if (floats_.data() != nullptr) {
    munmap(floats_.data(), bytes_of(floats_.size()));
    floats_ = {};
  }
}

}  // namespace disttf::net
