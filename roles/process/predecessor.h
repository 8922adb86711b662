// Where one listens who is started again in the moment that its predecessor was killed.
#pragma once

#include <asio/ip/tcp.hpp>
#include <functional>
#include <string>

#include "roles/process/stop_signal.h"

namespace disttf::roles {

// Calls `listen`, which throws std::system_error, and calls it again, in short pauses and for two
// seconds at most, while that says that the address is in use: the kernel takes a killed process
// apart in its own time, and a server's task dies a moment after the server. Tells the log once
// that `what` ("--port 8501") is waited for. Blocks this thread. Throws what `listen` threw last;
// with a `stop` that a signal has come to, Failure (130 or 143) at once.
[[nodiscard]] asio::ip::tcp::acceptor listen_after_predecessor(
    const std::string& what, const std::function<asio::ip::tcp::acceptor()>& listen,
    const StopSignal* stop = nullptr);

}  // namespace disttf::roles
