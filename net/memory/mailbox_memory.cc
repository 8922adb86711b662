#include "net/memory/mailbox_memory.h"

#include <system_error>

namespace disttf::net {

std::unique_ptr<MailboxMemory> MailboxMemory::create(const Shape& shape) {
  std::error_code error;  // any error means: send frames
  auto memory = SharedMemory::create(shape.size(), error);
  return memory ? std::unique_ptr<MailboxMemory>(new MailboxMemory(std::move(memory), shape))
                : nullptr;
}

void MailboxMemory::set_parked(bool parked) noexcept {
  const auto flag = memory_->bytes().subspan(shape_.parked_flag(), kParkedFlagBytes);
  net::set_parked(ParkedFlag(flag), parked);
}

}  // namespace disttf::net
