#include "net/waiting/descriptor.h"

#include <sys/resource.h>

#include <asio/error.hpp>
#include <cerrno>

namespace disttf::net {
namespace {

// Asio has its own category for system errors, and few of them map to portable conditions.
bool is_system_error(std::error_code error, int number) noexcept {
  return error == std::error_code(number, asio::error::get_system_category()) ||
         error == std::error_code(number, std::system_category()) ||
         error == std::error_code(number, std::generic_category());
}

}  // namespace

bool is_out_of_descriptors(std::error_code error) noexcept {
  return is_system_error(error, EMFILE) || is_system_error(error, ENFILE);
}

std::string descriptor_hint(std::error_code error) {
  rlimit limit{};
  if (!is_system_error(error, EMFILE) || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {};
  }
  return "; this process may have " + std::to_string(limit.rlim_cur) +
         " files and connections open (ulimit -n)";
}

}  // namespace disttf::net
