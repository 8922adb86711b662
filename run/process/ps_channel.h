// Channels to a ps: opening one for the state that it holds, and the time limit of a transfer.
//
// Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/tcp/channel.h"
#include "net/tcp/peer.h"
#include "net/waiting/interrupt.h"
#include "run/task.h"

namespace disttf::roles {

// For `bytes` bytes over the slowest acceptable link: 1 Mbit/s.
[[nodiscard]] net::Deadline transfer_deadline(const Task& task, std::size_t bytes);

// To a host of the range; for the chief, which saves the state, and for evaluators and services.
// Throws Failure if this process's own limits prevent the connection.
[[nodiscard]] net::OpenedChannel open_state_channel(const Task& task, std::size_t range,
                                                    std::uint8_t replica,
                                                    const net::Interrupt& interrupt,
                                                    net::Deadline deadline);

}  // namespace disttf::roles
