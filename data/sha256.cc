#include "data/sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/file.h"

namespace disttf::data {
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
