#include "net/memory/sharing_trial.h"

#include <memory>
#include <optional>
#include <utility>

#include "net/memory/handover.h"
#include "net/memory/shared_memory.h"

namespace disttf::net {

std::error_code try_sharing(std::string& step) {
  std::error_code error;
  step = "to make memory that can be shared (memfd_create)";
  const auto memory = SharedMemory::create(kPageBytes, error);
  if (error) {
    return error;
  }
  step = "to reach a socket of this machine (AF_UNIX)";
  const auto peer_listener = PeerListener::open(error);
  if (error) {
    return error;
  }
  // One thread can take both parts: connecting and handing over complete in the listen queue before
  // admit() is called.
  const Descriptor peer = connect_to_peer_listener(peer_listener->name(), error);
  if (error) {
    return error;
  }
  step = "to hand memory over (SCM_RIGHTS)";
  const std::uint64_t token = draw_token().value_or(0);
  if (const auto failed = hand_over(peer, token, memory->descriptor())) {
    return failed;
  }
  std::optional<HandedOver> handed = peer_listener->admit(token);
  if (!handed) {
    return std::make_error_code(std::errc::no_message);
  }
  step = "to map what was handed over";
  const std::size_t size = memory->bytes().size();
  static_cast<void>(SharedView::map(std::move(handed->what), {.size = size}, size, error));
  return error;
}

}  // namespace disttf::net
