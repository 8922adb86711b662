// parse_address_list: an accepted list is written and read again unchanged; a rejected one gives
// one short sentence that begins with the field and fits on one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "net/wire/address.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& address : disttf::net::parse_address_list("--ps_hosts", text)) {
      if (disttf::net::parse_address("again", to_string(address)) != address) std::abort();
    }
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "--ps_hosts: ", 600);
  }
  return 0;
}
