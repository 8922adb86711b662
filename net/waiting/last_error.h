// The error of the system call that has just failed.
#pragma once

#include <cerrno>
#include <system_error>

namespace disttf::net {

[[nodiscard]] inline std::error_code last_error() noexcept {
  return {errno, std::system_category()};
}

}  // namespace disttf::net
