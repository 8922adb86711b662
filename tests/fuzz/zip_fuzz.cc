// The zip reader: for any bytes, the output does not exceed the limit, and is empty on an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/zip.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  constexpr std::size_t kMost = 200'000;  // larger than a member's first allocation
  const ZipSource source = zip_source({data, size});
  std::vector<ZipMember> members;
  if (list_zip(source, members)) {
    require(members.empty());
    return 0;
  }
  require(members.size() * 46 <= size);  // the least size of a directory entry
  // Limits the number of members: each lookup starts at the beginning.
  members.resize(std::min<std::size_t>(members.size(), 16));
  for (const ZipMember& member : members) {
    std::vector<std::uint8_t> out;
    if (read_zip_member(source, member.name, kMost, out)) {
      require(out.empty());
    } else {
      require(out.size() <= kMost);
    }
  }
  return 0;
}
