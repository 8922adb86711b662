// Memory that this task shares with a program on the same machine (docs/program_protocol.md): one
// block that the program only reads, or one that it writes as well.
//
// Nothing here synchronises; the messages do. An object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include "net/waiting/descriptor.h"

namespace disttf::net {

class ProgramMemory {
 public:
  enum class Access { kRead, kWrite };  // of the program

  ProgramMemory() = default;
  // Zeroed floats on page boundaries. Its size cannot change, so that reading it cannot fault; with
  // kRead, where the kernel can forbid that (Linux 5.1), the program cannot write to it. Throws
  // std::system_error where the system does not have that much.
  ProgramMemory(std::size_t floats, Access access);
  ~ProgramMemory();
  ProgramMemory(ProgramMemory&& other) noexcept;
  ProgramMemory& operator=(ProgramMemory&& other) noexcept;
  ProgramMemory(const ProgramMemory&) = delete;
  ProgramMemory& operator=(const ProgramMemory&) = delete;

  [[nodiscard]] std::span<float> floats() const noexcept { return floats_; }
  // To be handed to the program.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }

 private:
  void unmap() noexcept;

  Descriptor descriptor_;
  std::span<float> floats_;
};

}  // namespace disttf::net
