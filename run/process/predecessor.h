// Listening for a task that is restarted at the moment when its predecessor is killed.
#pragma once

#include <asio/ip/tcp.hpp>
#include <functional>
#include <string>

#include "run/process/stop_signal.h"

namespace disttf::roles {

// Calls `listen`, which throws std::system_error, and retries in short intervals for up to two
// seconds while the address is in use: the kernel needs time to clean up a killed process, and a
// server's task dies a moment after the server. Logs once that `what` ("--port 8501") is waited
// for. Blocks this thread. Throws the last exception of `listen`; or, if a signal has come to
// `stop`, Failure (130 or 143) at once.
[[nodiscard]] asio::ip::tcp::acceptor listen_after_predecessor(
    const std::string& what, const std::function<asio::ip::tcp::acceptor()>& listen,
    const StopSignal* stop = nullptr);

}  // namespace disttf::roles
