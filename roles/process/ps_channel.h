// Channels to a ps: how one is opened for the state that it holds, and how long a transfer may
// take.
//
// Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/transport/channel.h"
#include "net/transport/interrupt.h"
#include "net/transport/peer.h"
#include "roles/run/task.h"

namespace disttf::roles {

// For so many bytes over the slowest link that is good enough: 1 Mbit/s.
[[nodiscard]] net::Deadline transfer_deadline(const Task& task, std::size_t bytes);

// To a host of the range: the chief's, who saves it, and of whoever watches a run. Throws Failure
// where it is this process's own limits that keep it from connecting.
[[nodiscard]] net::OpenedChannel open_state_channel(const Task& task, std::size_t range,
                                                    std::uint8_t replica,
                                                    const net::Interrupt& interrupt,
                                                    net::Deadline deadline);

}  // namespace disttf::roles
