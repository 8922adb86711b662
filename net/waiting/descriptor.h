// File descriptors: an owned one, which is closed with its owner, their limit, and the system's
// errors.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace disttf::net {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }  // -1: there is none
  // Gives up ownership: the caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  void reset() noexcept {
    if (const int number = std::exchange(number_, -1); number >= 0) {
      ::close(number);
    }
  }

 private:
  int number_;
};

// Returns a duplicate, for libraries that close their own descriptor, as asio does. Not open: errno
// has the reason.
[[nodiscard]] inline Descriptor copy_of(int number) noexcept {
  return Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
}

// Whether the limit on open descriptors, of this process or of the machine, caused the error.
[[nodiscard]] bool is_out_of_descriptors(std::error_code error) noexcept;

// Returns a suffix for the error's message: "; this process may have 12 files and connections open
// (ulimit -n)" if the process's own limit caused the error, else an empty string.
[[nodiscard]] std::string descriptor_hint(std::error_code error);

// The error of the system call that has just failed.
[[nodiscard]] inline std::error_code last_error() noexcept {
  return {errno, std::system_category()};
}

}  // namespace disttf::net
