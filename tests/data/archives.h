// Small archives that the tests of data/ make for themselves: no test needs the real ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/data/scratch.h"

namespace disttf::data::test {

struct PackedFile {
  std::string name;
  Bytes contents;
};

// A zip file, written by minizip.
[[nodiscard]] Bytes zip(const std::vector<PackedFile>& files);

// A tar archive as GNU tar writes it, with its magic, or with POSIX's ("ustar").
enum class TarForm : std::uint8_t { kGnu, kPosix };
[[nodiscard]] Bytes tar(const std::vector<PackedFile>& files, TarForm form = TarForm::kGnu);
// Its parts: the header of a member of that size and kind, and the blocks at the end.
[[nodiscard]] Bytes tar_header(const std::string& name, std::size_t size_bytes, char kind = '0',
                               TarForm form = TarForm::kGnu);
[[nodiscard]] Bytes tar_end();
// The sum that a header has now.
void put_tar_sum(Bytes& header);

// Bytes that look alike nowhere.
[[nodiscard]] Bytes noise(std::size_t size_bytes, std::uint32_t seed);

}  // namespace disttf::data::test
