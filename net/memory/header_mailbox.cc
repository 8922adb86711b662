#include "net/memory/header_mailbox.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "net/wire/codec.h"

namespace disttf::net {
namespace {

static_assert(kParkedFlagBytes == sizeof(std::uint32_t));

std::size_t within(std::size_t bytes, std::uint64_t place, std::size_t size,
                   std::size_t boundary) noexcept {
  // `place` comes from the peer. The subtraction cannot wrap around, because `bytes >= size`
  // precedes it.
  const bool is_there = place % boundary == 0 && bytes >= size && place <= bytes - size;
  return is_there ? place : 0;
}

// Converts between the byte order of this machine and that of the wire.
std::uint64_t as_little_endian(std::uint64_t count) noexcept {
  std::uint64_t stored = 0;
  store_le(count, std::as_writable_bytes(std::span(&stored, 1)));
  return stored;
}

// The offset in a mailbox of the header of that number.
std::size_t place_of(std::uint64_t number) noexcept {
  return (1 + number % kHeadersInMailbox) * kHeaderBytes;
}

}  // namespace

void leave_header(HeaderMailbox slot, const FrameHeader& header) noexcept {
  const std::uint64_t count = header_count(slot);
  const auto place = slot.subspan(place_of(count), kHeaderBytes);
  encode_header(header, std::span<std::byte, kHeaderBytes>(place));
  // The count is stored last: a reader that sees it also sees the header.
  auto* at = reinterpret_cast<std::uint64_t*>(slot.data());
  __atomic_store_n(at, as_little_endian(count + 1), __ATOMIC_SEQ_CST);
}

// Not std::atomic_ref, which does not accept const objects.
std::uint64_t header_count(HeaderMailboxView slot) noexcept {
  const auto* at = reinterpret_cast<const std::uint64_t*>(slot.data());
  return as_little_endian(__atomic_load_n(at, __ATOMIC_SEQ_CST));
}

void set_owner_token(HeaderMailbox slot, std::uint64_t token) noexcept {
  auto* at = reinterpret_cast<std::uint64_t*>(slot.data()) + 1;
  __atomic_store_n(at, as_little_endian(token), __ATOMIC_SEQ_CST);
}

std::uint64_t owner_token_of(HeaderMailboxView slot) noexcept {
  const auto* at = reinterpret_cast<const std::uint64_t*>(slot.data()) + 1;
  return as_little_endian(__atomic_load_n(at, __ATOMIC_SEQ_CST));
}

std::error_code read_header(HeaderMailboxView slot, std::uint64_t number,
                            FrameHeader& out) noexcept {
  // Copies first: the peer may overwrite the bytes between a check and a later use.
  std::array<std::byte, kHeaderBytes> bytes{};
  std::copy_n(slot.subspan(place_of(number)).begin(), kHeaderBytes, bytes.begin());
  return decode_header(bytes, out);
}

std::size_t mailbox_within(std::size_t bytes, std::uint64_t place) noexcept {
  return within(bytes, place, kHeaderMailboxBytes, kHeaderBytes);
}

std::size_t parked_flag_within(std::size_t bytes, std::uint64_t place) noexcept {
  return within(bytes, place, kParkedFlagBytes, kParkedFlagBytes);
}

void set_parked(ParkedFlag word, bool parked) noexcept {
  auto* value = reinterpret_cast<std::uint32_t*>(word.data());
  __atomic_store_n(value, parked ? 1U : 0U, __ATOMIC_SEQ_CST);
}

bool is_parked(ParkedFlagView word) noexcept {
  const auto* value = reinterpret_cast<const std::uint32_t*>(word.data());
  return __atomic_load_n(value, __ATOMIC_SEQ_CST) != 0;
}

// ------------------------------------------------------------------------------- the other end's

PeerMailbox::PeerMailbox(std::span<const std::byte> memory, const SharedOffer& offer,
                         std::uint64_t begin) noexcept
    : mailbox_(mailbox_within(offer.size, offer.slot) != 0
                   ? memory.subspan(offer.slot - begin, kHeaderMailboxBytes).data()
                   : nullptr),
      flag_(parked_flag_within(offer.size, offer.parked_flag) != 0
                ? memory.subspan(offer.parked_flag - begin, kParkedFlagBytes).data()
                : nullptr) {
  skip();
}

// The subtraction wraps around with the counters.
std::error_code PeerMailbox::take(FrameHeader& out) noexcept {
  if (header_count(mailbox()) - taken_ > kHeadersInMailbox) {
    return WireError::kUnexpected;
  }
  return read_header(mailbox(), taken_++, out);
}

Left PeerMailbox::leave(HeaderMailbox own, const FrameHeader& header) const noexcept {
  leave_header(own, header);
  // Read after the header is written. The reader sets its flag and then polls, so one of the two
  // sees what the other did.
  return is_parked() ? Left::kHeaderAndWake : Left::kHeader;
}

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
