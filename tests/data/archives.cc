#include "tests/data/archives.h"

#include <minizip/zip.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

namespace disttf::data::test {
namespace {

constexpr std::size_t kBlockBytes = 512;

void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void put(Bytes& header, std::size_t offset, const std::string& text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::string octal(std::size_t value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%0*zo", digits, value);
  return text.data();
}

void expect_ok(int result) {
  if (result != ZIP_OK) throw std::runtime_error("minizip cannot write");
}

}  // namespace

Bytes zip(const std::vector<PackedFile>& files) {
  const ScratchDirectory directory;
  const std::filesystem::path path = directory.path() / "a.zip";
  const zipFile file = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (file == nullptr) throw std::runtime_error("minizip cannot write");
  for (const PackedFile& packed : files) {
    const auto size = static_cast<unsigned>(packed.contents.size());
    expect_ok(zipOpenNewFileInZip(file, packed.name.c_str(), nullptr, nullptr, 0, nullptr, 0,
                                  nullptr, Z_DEFLATED, Z_DEFAULT_COMPRESSION));
    expect_ok(zipWriteInFileInZip(file, packed.contents.data(), size));
    expect_ok(zipCloseFileInZip(file));
  }
  expect_ok(zipClose(file, nullptr));
  return read(path);
}

Bytes tar_header(const std::string& name, std::size_t size_bytes, char kind, TarForm form) {
  Bytes header(kBlockBytes);
  put(header, 0, name.substr(0, 100));
  put(header, 100, "0000644");
  put(header, 124, octal(size_bytes, 11));
  put(header, 136, octal(1234567, 11));
  header[156] = static_cast<std::uint8_t>(kind);
  put(header, 257, form == TarForm::kGnu ? "ustar  " : std::string("ustar\00000", 8));
  put_tar_sum(header);
  return header;
}

void put_tar_sum(Bytes& header) {
  put(header, 148, "        ");
  std::size_t sum = 0;
  for (const std::uint8_t byte : header) sum += byte;
  put(header, 148, octal(sum, 6) + std::string("\0 ", 2));
}

Bytes tar_end() { return Bytes(2 * kBlockBytes); }

Bytes tar(const std::vector<PackedFile>& files, TarForm form) {
  Bytes archive;
  for (const PackedFile& packed : files) {
    append(archive, tar_header(packed.name, packed.contents.size(), '0', form));
    append(archive, packed.contents);
    archive.resize((archive.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  }
  append(archive, tar_end());
  return archive;
}

Bytes noise(std::size_t size_bytes, std::uint32_t seed) {
  Bytes bytes(size_bytes);
  for (std::uint8_t& byte : bytes) {
    seed = seed * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(seed >> 24U);
  }
  return bytes;
}

}  // namespace disttf::data::test
