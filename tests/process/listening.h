// Waits for a server that a test has started.
#pragma once

#include <cstdint>

namespace disttf::test_process {

// Returns false if no process listens on that port of 127.0.0.1 within kPatience.
[[nodiscard]] bool wait_until_listening(std::uint16_t port);

}  // namespace disttf::test_process
