// What to tell whoever has started a process that may not open as much as it needs.
#pragma once

#include <string>
#include <system_error>

namespace disttf::net {

// Whether a limit on open descriptors, this process's or the machine's, is why something failed.
[[nodiscard]] bool is_out_of_descriptors(std::error_code error) noexcept;

// What follows the error's message in a sentence: "; this process may have 12 files and connections
// open (ulimit -n)" where its own limit is why, else nothing.
[[nodiscard]] std::string descriptor_hint(std::error_code error);

}  // namespace disttf::net
