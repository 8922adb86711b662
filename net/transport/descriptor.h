// An open file of this process, closed with its owner.
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
  // Somebody else closes it from now on.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  void reset() noexcept {
    if (const int number = std::exchange(number_, -1); number >= 0) {
      ::close(number);
    }
  }

 private:
  int number_;
};

// Another one of the same open file, for who closes his own, as asio does. Not open: errno says
// why.
[[nodiscard]] inline Descriptor copy_of(int number) noexcept {
  return Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
}

}  // namespace disttf::net
