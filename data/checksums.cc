#include "data/checksums.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/file.h"

namespace disttf::data {
namespace {

// Processes 8 bytes per step, because one byte at a time would be slower than a network delivers
// them.
constexpr std::size_t kTurnBytes = 8;

// tables[k][b]: what byte b does to the checksum when k further bytes, all 0, have come after it.
// The polynomial has its highest power in the lowest bit.
using Tables = std::array<std::array<std::uint32_t, 256>, kTurnBytes>;
constexpr Tables kTables = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    }
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}();

static_assert(std::endian::native == std::endian::little);

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  std::uint32_t value = ~before;
  for (; bytes.size() >= kTurnBytes; bytes = bytes.subspan(kTurnBytes)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kTurnBytes);
    // The checksum so far enters the first four bytes, which the tables then carry through the
    // others.
    word ^= value;
    value = 0;
    for (std::size_t i = 0; i < kTurnBytes; ++i) {
      value ^= kTables[kTurnBytes - 1 - i][(word >> (8 * i)) & 0xFFU];
    }
  }
  for (const std::byte byte : bytes) {
    value = (value >> 8U) ^ kTables[0][(value ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~value;
}

std::uint32_t crc32c(std::string_view bytes) noexcept {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::uint32_t masked_crc32c(std::string_view bytes) noexcept {
  constexpr int kTurn = 15;
  constexpr std::uint32_t kMask = 0xA282EAD8;
  // TensorFlow's and LevelDB's masking: a checksum over data that contains checksums would be weak.
  return std::rotr(crc32c(bytes), kTurn) + kMask;
}

namespace {

EVP_MD_CTX* context_of(void* context) noexcept { return static_cast<EVP_MD_CTX*>(context); }

void check(int result) {
  if (result != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
}

std::string finish(EVP_MD_CTX* context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context, digest.data(), &size));
  constexpr std::string_view kHexCharacters = "0123456789abcdef";
  std::string text;
  text.reserve(std::size_t{2} * size);
  for (unsigned int i = 0; i < size; ++i) {
    text += kHexCharacters[digest[i] >> 4U];
    text += kHexCharacters[digest[i] & 15U];
  }
  return text;
}

}  // namespace

void Sha256::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(context_of(context));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ == nullptr ? 0 : 1);
  check(EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr));
}

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::string text = finish(context_of(context_.get()));
  check(EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr));
  return text;
}

std::string Sha256::hex_so_far() const {
  // A copy is finished instead of this hash, so that more bytes can follow.
  const Sha256 copy;
  check(EVP_MD_CTX_copy_ex(context_of(copy.context_.get()), context_of(context_.get())));
  return finish(context_of(copy.context_.get()));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_file(const std::filesystem::path& path) {
  struct stat status {};
  const FileDescriptor file = open_for_reading(path, status);
  Sha256 hash;
  std::vector<std::byte> buffer(std::size_t{1} << 18U);
  while (true) {
    const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
    if (count == 0) return hash.hex();
    if (count > 0) {
      hash.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot read " + path.string());
    }
  }
}

}  // namespace disttf::data
