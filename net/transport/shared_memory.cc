#include "net/transport/shared_memory.h"

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

#include "net/transport/last_error.h"
#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace disttf::net {
namespace {

// The token's page; what is shared begins behind it.
constexpr std::size_t kPrefixBytes = kPageBytes;

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Empty, and `error` set, when it cannot be mapped. All pages at once: the first step is not to
// stumble over each of them.
std::span<std::byte> map(int fd, std::size_t size, int protection, std::error_code& error) {
  void* address = mmap(nullptr, size, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (address == MAP_FAILED) {
    error = last_error();
    return {};
  }
  return {static_cast<std::byte*>(address), size};
}

// Whether the descriptor is the memory of the offer.
bool is_offered(int fd, const SharedOffer& offer) {
  const int seals = fcntl(fd, F_GET_SEALS);  // -1 for whatever is not a memfd
  struct stat status {};
  std::uint64_t token = 0;
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &status) == 0 &&
         status.st_size >= 0 &&
         static_cast<std::uint64_t>(status.st_size) == kPrefixBytes + offer.size &&
         pread(fd, &token, sizeof token, 0) == sizeof token && token == offer.token;
}

}  // namespace

bool lies_in(std::span<const std::byte> part, std::span<const std::byte> whole) noexcept {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

std::vector<std::byte> encode(const SharedOffer& offer) {
  ByteWriter body(kSharedOfferBytes);
  body.put(offer.pid);
  body.put(offer.fd);
  body.put(offer.token);
  body.put(offer.size);
  body.put(offer.signal);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, SharedOffer& out) {
  ByteReader reader(body);
  SharedOffer offer;
  offer.pid = reader.get<std::uint32_t>();
  offer.fd = reader.get<std::uint32_t>();
  offer.token = reader.get<std::uint64_t>();
  offer.size = reader.get<std::uint64_t>();
  offer.signal = reader.get<std::uint64_t>();
  if (!reader.complete()) {
    return WireError::kBadBody;
  }
  out = offer;
  return {};
}

SharedMemory::SharedMemory(int fd, std::uint64_t token, std::span<std::byte> mapped)
    : fd_(fd), token_(token), mapped_(mapped), bytes_(mapped.subspan(kPrefixBytes)) {
  std::memcpy(mapped.data(), &token, sizeof token);
}

SharedMemory::~SharedMemory() {
  munmap(mapped_.data(), mapped_.size());
  close(fd_);
}

std::unique_ptr<SharedMemory> SharedMemory::create(std::size_t size, std::uint64_t token,
                                                   std::error_code& error) {
  Descriptor fd(memfd_create("disttf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) {
    error = last_error();
    return nullptr;
  }
  const std::size_t whole = kPrefixBytes + size;
  // posix_fallocate takes the pages now: a machine without the memory says so here, and not by a
  // signal in the middle of a step.
  if (const int failed = posix_fallocate(fd.get(), 0, static_cast<off_t>(whole)); failed != 0) {
    error = {failed, std::system_category()};
    return nullptr;
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    error = last_error();
    return nullptr;
  }
  const std::span<std::byte> mapped = map(fd.get(), whole, PROT_READ | PROT_WRITE, error);
  if (mapped.empty()) {
    return nullptr;
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(fd.release(), token, mapped));
}

SharedOffer SharedMemory::offer() const noexcept {
  return {.pid = static_cast<std::uint32_t>(getpid()),
          .fd = static_cast<std::uint32_t>(fd_),
          .token = token_,
          .size = bytes_.size()};
}

std::span<const std::byte> BodyPlace::bytes() const noexcept {
  return view->bytes().subspan(offset, size);
}

SharedView::SharedView(int fd, std::span<std::byte> mapped)
    : fd_(fd), mapped_(mapped), bytes_(mapped.subspan(kPrefixBytes)) {}

SharedView::~SharedView() {
  munmap(mapped_.data(), mapped_.size());
  close(fd_);
}

std::shared_ptr<const SharedView> SharedView::open(const SharedOffer& offer, std::size_t most,
                                                   std::error_code& error) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::ptrdiff_t>::max() - kPrefixBytes;
  if (offer.size == 0 || offer.size > std::min<std::uint64_t>(most, kMost)) {
    error = std::make_error_code(std::errc::invalid_argument);
    return nullptr;
  }
  const std::string path = "/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.fd);
  // A number from outside may lead to anything, and to open some files has effects.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    error = last_error();
    return nullptr;
  }
  if (!S_ISREG(status.st_mode)) {
    error = std::make_error_code(std::errc::permission_denied);
    return nullptr;
  }
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    error = last_error();
    return nullptr;
  }
  if (!is_offered(fd.get(), offer)) {
    error = std::make_error_code(std::errc::permission_denied);
    return nullptr;
  }
  const std::span<std::byte> mapped = map(fd.get(), kPrefixBytes + offer.size, PROT_READ, error);
  if (mapped.empty()) {
    return nullptr;
  }
  return std::shared_ptr<const SharedView>(new SharedView(fd.release(), mapped));
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
  // Addresses first, so that nothing else is put between the pieces.
  void* address = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    error = last_error();
    return nullptr;
  }
  std::unique_ptr<JoinedView> joined(
      new JoinedView(pieces, {static_cast<std::byte*>(address), whole}, size));
  std::byte* next = joined->reserved_.data();
  for (const Piece& piece : pieces) {
    const std::size_t length = whole_pages(piece.size);
    if (length != 0 &&
        mmap(next, length, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, piece.view->fd_,
             static_cast<off_t>(kPrefixBytes + piece.offset)) == MAP_FAILED) {
      error = last_error();
      return nullptr;
    }
    next += length;
  }
  error.clear();
  return joined;
}

}  // namespace disttf::net
