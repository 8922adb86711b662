// The options of DC/OS' TensorFlow package (`dcos package install beta-tensorflow --options=FILE`),
// with that package's meaning.
//
// They are checked against the package's own schema after its defaults are filled in, as the
// package does: unknown names, wrong types and unknown words are rejected. Options that only its
// scheduler and Python use are ignored with a warning.
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

// The options below worker or parameter_server.
struct DcosTasks {
  std::size_t count = 0;
  std::uint16_t port = 0;
  double cpus = 0;
  std::uint64_t memory_mib = 0;
  std::vector<std::string> placement;  // "hostname:UNIQUE"
};

// The options below gpu_worker: further workers, with GPUs, of a user's own program.
struct DcosGpuWorkers {
  std::size_t count = 0;
  std::uint64_t gpus = 0;  // of each
  double cpus = 0;
  std::uint64_t memory_mib = 0;
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
  std::optional<DcosGpuWorkers> gpu_workers;   // only of a user's own program
  std::string image;                           // tf_image, likewise; empty: the package's
  std::string gpu_image;                       // gpu_tf_image
  std::optional<DcosTensorBoard> tensorboard;  // use_tensorboard
  // job_context: training flags by name, "batch_size" -> "50". Of a job none: its main() gets them.
  std::vector<std::pair<std::string, std::string>> flags;
  // Of a job: the COMMAND that calls its main(), with doubled braces, and job_url, which the engine
  // fetches before; empty: the image has the job.
  std::vector<std::string> command;
  std::string job_url;
  std::vector<std::string> warnings;
};

// What trains: disttf's own models, which use neither GPU workers nor the images; a user's COMMAND;
// or the package's job, a Python module with main(server, log_dir, context).
enum class DcosTrains : std::uint8_t { kOwnModel, kCommand, kJob };

[[nodiscard]] DcosOptions read_dcos_options(std::string_view text,
                                            DcosTrains trains = DcosTrains::kOwnModel);

// All options with their values, from the text or the schema. For read_dcos_options() and its
// tests.
[[nodiscard]] nlohmann::json merge_dcos_options(std::string_view text);

}  // namespace disttf::render
