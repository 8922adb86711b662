// An owned file descriptor, closed with its owner.
#pragma once

#include <fcntl.h>
#include <unistd.h>

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

}  // namespace disttf::net
