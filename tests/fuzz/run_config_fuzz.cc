// A run's configuration, as a ps passes it to a trainer and as a checkpoint contains it: an
// accepted text is written again unchanged, and a valid configuration stays within its limits; any
// other is rejected with a sentence.
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "math/model_spec.h"
#include "net/wire/handshake.h"
#include "run/run_config.h"
#include "run/setting.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;
using disttf::roles::RunConfig;

// Reads a text that this target wrote, which must be accepted.
RunConfig read_again(const std::string& text) noexcept {
  return disttf::roles::run_config_from_json(text);
}

void check(const RunConfig& config) {
  const std::string published = to_json(config);
  require(to_json(read_again(published)) == published);
  const std::string saved = to_saved_json(config);
  require(to_saved_json(read_again(saved)) == saved);
  validate(config);
  require(disttf::math::layout_of(config.model).size() <= disttf::roles::kMaxParameters);
  // Tasks and checkpoints of the same configuration report no difference.
  require(!difference(config, saved));
  require(evaluates_alike(config, saved));
  require(stops_alike(config, saved) == config.stops_early());
  std::set<std::string> all;
  for (const disttf::roles::Setting& setting : disttf::roles::settings()) {
    all.emplace(setting.name);
  }
  require(!contradiction(config, all, config));
  require(config.trainers >= 1 && config.trainers <= disttf::roles::kMaxTrainers);
  require(config.batch_size >= 1 && config.batch_size <= disttf::roles::kMaxBatchSize);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(disttf::roles::run_config_from_json(text));
  } catch (const std::invalid_argument& refused) {
    require(*refused.what() != '\0');
  }
  return 0;
}
