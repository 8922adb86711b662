// Small archives that the tests of data/ create, so that no test needs the real ones.
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

// A tar archive in the form of GNU tar, with its magic, or with that of POSIX ("ustar").
enum class TarForm : std::uint8_t { kGnu, kPosix };
[[nodiscard]] Bytes tar(const std::vector<PackedFile>& files, TarForm form = TarForm::kGnu);
// The parts of an archive: the header of a member of that size and kind, and the final blocks.
[[nodiscard]] Bytes tar_header(const std::string& name, std::size_t size_bytes, char kind = '0',
                               TarForm form = TarForm::kGnu);
[[nodiscard]] Bytes tar_end();
// Recomputes a header's sum.
void put_tar_sum(Bytes& header);

// Returns bytes without repetition.
[[nodiscard]] Bytes noise(std::size_t size_bytes, std::uint32_t seed);

}  // namespace disttf::data::test
