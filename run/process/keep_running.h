// Serving that a task can do without, such as a page or a metrics address.
#pragma once

#include <asio/io_context.hpp>
#include <string_view>

namespace disttf::roles {

// Runs the handlers of `context` until it has no more work. If a handler throws, logs a warning
// that begins with `what` ("the page"), and goes on: the task must not end, and the handlers that
// other threads post must not pile up. Of equal warnings in a row it logs the first.
void keep_running(asio::io_context& context, std::string_view what) noexcept;

}  // namespace disttf::roles
