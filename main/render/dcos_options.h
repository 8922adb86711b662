// The options of DC/OS' TensorFlow package (`dcos package install beta-tensorflow --options=FILE`),
// read as that package means them.
//
// They are held against the package's own schema after its defaults have been filled in, as the
// package itself does it: unknown names, wrong types and words that it does not know are refused.
// What only matters to its scheduler and to Python is left aside with a warning.
//
// Pure functions. Every error is a std::invalid_argument with one sentence: "--options: ", the
// option, its value, what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disttf::render {

// Of worker, or of parameter_server.
struct DcosTasks {
  std::size_t count = 0;
  std::uint16_t port = 0;
  double cpus = 0;
  std::uint64_t memory_mib = 0;
  std::vector<std::string> placement;  // "hostname:UNIQUE"
};

struct DcosTensorBoard {
  std::uint16_t port = 0;
  double cpus = 0;
  std::uint64_t memory_mib = 0;
};

struct DcosOptions {
  std::string name;
  std::string user;
  std::string network;    // empty: the machine's
  std::string train_dir;  // shared_filesystem, a path or a URL; empty: none
  DcosTasks ps;
  DcosTasks workers;
  std::optional<DcosTensorBoard> tensorboard;  // use_tensorboard
  // job_context: training flags by name, "batch_size" -> "50".
  std::vector<std::pair<std::string, std::string>> flags;
  std::vector<std::string> warnings;
};

[[nodiscard]] DcosOptions read_dcos_options(std::string_view text);

// All options with their values, those of the text or the schema's. For read_dcos_options() and
// its tests.
[[nodiscard]] nlohmann::json merge_dcos_options(std::string_view text);

}  // namespace disttf::render
