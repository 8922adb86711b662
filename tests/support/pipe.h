// A pipe that a test reads or writes. The object closes its ends; children do not inherit them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "data/file.h"

namespace disttf::test_support {

struct Pipe {
  // Throws std::system_error.
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::system_category(), "pipe2");
    }
    read_end = data::FileDescriptor(ends[0]);
    write_end = data::FileDescriptor(ends[1]);
  }

  data::FileDescriptor read_end;
  data::FileDescriptor write_end;
};

}  // namespace disttf::test_support
