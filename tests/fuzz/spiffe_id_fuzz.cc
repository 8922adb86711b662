// parse_spiffe_id: a certificate's name for its task has exactly one reading, and the run's name is
// always a prefix of the input.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/tls/spiffe_id.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using disttf::fuzz::require;
  const std::string_view uri(reinterpret_cast<const char*>(data), size);
  const auto id = disttf::net::parse_spiffe_id(uri);
  if (!id) return 0;
  require(uri.size() <= disttf::net::kMostSpiffeIdBytes);
  require(uri.starts_with(id->run + "/") || uri.starts_with(id->run + "-"));
  const std::string again = id->run + "/" + std::string(disttf::net::job_name(id->job)) +
                            (id->index ? "/" + std::to_string(*id->index) : "");
  require(disttf::net::parse_spiffe_id(again) == id);
  return 0;
}
