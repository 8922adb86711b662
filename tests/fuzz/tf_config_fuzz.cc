// parse_tf_config: any text gives a valid cluster, "train locally", or one short sentence that
// begins with the variable's name and fits on one line.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "net/resolvers/tf_config.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto parsed = disttf::net::parse_tf_config(text);
    if (parsed) disttf::net::validate(parsed->cluster, parsed->task);
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "TF_CONFIG", 1000);
  }
  return 0;
}
