// Error texts for a process that has reached its limit of open descriptors.
#pragma once

#include <string>
#include <system_error>

namespace disttf::net {

// Whether the limit on open descriptors, of this process or of the machine, caused the error.
[[nodiscard]] bool is_out_of_descriptors(std::error_code error) noexcept;

// Returns a suffix for the error's message: "; this process may have 12 files and connections open
// (ulimit -n)" if the process's own limit caused the error, else an empty string.
[[nodiscard]] std::string descriptor_hint(std::error_code error);

}  // namespace disttf::net
