#include "net/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "net/waiting/descriptor.h"
#include "net/wire/frame.h"

namespace disttf::net {
namespace {

// Empty, and `error` set, when it cannot be mapped. All pages are mapped at once, so that the first
// step has no page faults.
std::span<std::byte> map(int fd, std::size_t size, int protection, std::error_code& error,
                         std::uint64_t offset = 0) {
  void* address =
      mmap(nullptr, size, protection, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    error = last_error();
    return {};
  }
  return {static_cast<std::byte*>(address), size};
}

// Whether the descriptor is memory of the offered size that cannot shrink.
bool is_offered(int fd, const SharedOffer& offer) {
  const int seals = fcntl(fd, F_GET_SEALS);  // -1 for anything but a memfd
  struct stat status {};
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &status) == 0 &&
         status.st_size >= 0 && static_cast<std::uint64_t>(status.st_size) == offer.size;
}

// Fixes the size and makes later mappings read-only; the owner has its own mapping already. Linux
// before 5.1 has no seal for the latter; memory is shared all the same.
bool seal(int fd) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  return fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0 ||
         fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_SEAL) == 0;
}

}  // namespace

bool lies_in(std::span<const std::byte> part, std::span<const std::byte> whole) noexcept {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

SharedMemory::SharedMemory(Descriptor descriptor, std::span<std::byte> bytes) noexcept
    : descriptor_(std::move(descriptor)), bytes_(bytes) {}

SharedMemory::~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }

std::unique_ptr<SharedMemory> SharedMemory::create(std::size_t size, std::error_code& error) {
  Descriptor fd(memfd_create("disttf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) {
    error = last_error();
    return nullptr;
  }
  // posix_fallocate allocates the pages now. A machine without enough memory fails here, and not by
  // a signal in the middle of a step.
  if (const int failed = posix_fallocate(fd.number(), 0, static_cast<off_t>(size)); failed != 0) {
    error = {failed, std::system_category()};
    return nullptr;
  }
  const std::span<std::byte> mapped = map(fd.number(), size, PROT_READ | PROT_WRITE, error);
  if (mapped.empty()) {
    return nullptr;
  }
  // Mapped before it is sealed: F_SEAL_FUTURE_WRITE forbids this process another writable mapping,
  // too.
  std::unique_ptr<SharedMemory> memory(new SharedMemory(std::move(fd), mapped));
  if (!seal(memory->descriptor())) {
    error = last_error();
    return nullptr;
  }
  return memory;
}

std::span<const std::byte> BodyLocation::bytes() const noexcept {
  return view->bytes().subspan(offset, size);
}

SharedView::SharedView(Descriptor descriptor, std::span<std::byte> mapped) noexcept
    : descriptor_(std::move(descriptor)), bytes_(mapped) {}

SharedView::~SharedView() { munmap(bytes_.data(), bytes_.size()); }

std::shared_ptr<const SharedView> SharedView::map(Descriptor descriptor, const SharedOffer& offer,
                                                  std::size_t most, std::error_code& error) {
  return map_part(std::move(descriptor), offer, 0, offer.size, most, error);
}

std::shared_ptr<const SharedView> SharedView::map_part(Descriptor descriptor,
                                                       const SharedOffer& offer,
                                                       std::uint64_t offset, std::uint64_t size,
                                                       std::size_t most, std::error_code& error) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::ptrdiff_t>::max();
  const bool is_part = size != 0 && size <= offer.size && offset <= offer.size - size;
  // Mappings begin at page boundaries.
  const std::uint64_t before = offset % kPageBytes;  // bytes before it on the first page
  // The limit is checked before the mapping, because MAP_POPULATE allocates every page that a peer
  // offers.
  if (!is_part || offer.size > kMost || size + before > most) {
    error = std::make_error_code(std::errc::invalid_argument);
    return nullptr;
  }
  // The seal is checked before the mapping: a peer that shrinks the memory afterwards would end
  // this process with SIGBUS.
  if (!is_offered(descriptor.number(), offer)) {
    error = std::make_error_code(std::errc::permission_denied);
    return nullptr;
  }
  const std::span<std::byte> mapped =
      net::map(descriptor.number(), size + before, PROT_READ, error, offset - before);
  if (mapped.empty()) {
    return nullptr;
  }
  // The descriptor stays open, because JoinedView may map pieces of the same memory again.
  return std::shared_ptr<const SharedView>(new SharedView(std::move(descriptor), mapped));
}

JoinedView::JoinedView(std::span<const Piece> pieces, std::span<std::byte> reserved,
                       std::size_t size)
    : pieces_(pieces.begin(), pieces.end()), reserved_(reserved), bytes_(reserved.first(size)) {}

JoinedView::~JoinedView() { munmap(reserved_.data(), reserved_.size()); }

std::unique_ptr<const JoinedView> JoinedView::map(std::span<const Piece> pieces,
                                                  std::error_code& error) {
  error = std::make_error_code(std::errc::invalid_argument);
  std::size_t size = 0;
  for (const Piece& piece : pieces) {
    const std::size_t available = piece.view->bytes().size();
    const bool is_aligned =
        // Pieces can be joined only at page boundaries; the last piece may end anywhere.
        piece.offset % kPageBytes == 0 && (size % kPageBytes == 0 || piece.size == 0);
    if (!is_aligned || piece.size > available || piece.offset > available - piece.size) {
      return nullptr;
    }
    size += piece.size;
  }
  if (size == 0) {
    return nullptr;
  }
  const std::size_t whole = whole_pages(size);
  // Reserves the addresses first, so that nothing else is mapped between the pieces.
  void* address = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    error = last_error();
    return nullptr;
  }
  std::unique_ptr<JoinedView> joined(
      new JoinedView(pieces, {static_cast<std::byte*>(address), whole}, size));
  // After an error below, the destructor unmaps the whole range with the pieces that lie in it.
  std::byte* next = joined->reserved_.data();
  for (const Piece& piece : pieces) {
    const std::size_t length = whole_pages(piece.size);
    if (length != 0 &&
        // MAP_FIXED replaces the reserved addresses, and only those.
        mmap(next, length, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             piece.view->descriptor_.number(), static_cast<off_t>(piece.offset)) == MAP_FAILED) {
      error = last_error();
      return nullptr;
    }
    next += length;
  }
  // The error was preset for the early returns above.
  error.clear();
  return joined;
}

}  // namespace disttf::net
