// The safetensors reader: the tensors of an accepted file cover it without a gap.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/safetensors.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  const std::span bytes(data, size);
  SafetensorsHeader header;
  std::string detail;
  if (parse_safetensors(bytes, size, header, detail)) {
    require(!detail.empty());
    require(header.size_bytes == 0 && header.tensors.empty());
    return 0;
  }
  std::uint64_t next = header.size_bytes;
  for (const SafetensorsEntry& entry : header.tensors) {
    require(entry.begin_bytes == next);
    require(entry.size_bytes <= size - next);
    next += entry.size_bytes;
  }
  require(next == size);
  return 0;
}
