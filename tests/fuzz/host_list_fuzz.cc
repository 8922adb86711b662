// expand_host_list and expand_task_counts: a few bytes give only a limited number of short names or
// numbers; a rejected list gives one short sentence that begins with the field.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "net/resolvers/host_list.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;
using disttf::net::kMaxListedHosts;

template <typename Check>
void refused_or(Check check) {
  try {
    check();
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "LIST is \"", 1000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  refused_or([text] {
    const auto names = disttf::net::expand_host_list("LIST", text);
    require(!names.empty() && names.size() <= kMaxListedHosts);
    for (const std::string& name : names) require(!name.empty() && name.size() <= 253);
  });
  refused_or([text] {
    const auto counts = disttf::net::expand_task_counts("LIST", text);
    require(!counts.empty() && counts.size() <= kMaxListedHosts);
    for (const std::size_t count : counts) require(count >= 1 && count <= kMaxListedHosts);
  });
  return 0;
}
