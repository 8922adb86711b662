// The flags of `disttf render`, and the deployment that they describe.
//
// A cluster file (--cluster) is a TOML file of the same names, with the same checks and messages.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "main/flags/flag_group.h"
#include "main/flags/program.h"
#include "main/render/deployment.h"
#include "main/render/targets.h"

namespace disttf {

// The values as written, before they are checked against one another.
struct RenderFlags {
  std::string name = "mnist";
  std::string image;
  bool has_program = false;  // --program is given
  std::string program;       // its path; empty: none is given
  std::string disttf_image;
  std::vector<std::string> command;  // the words after --; empty: none
  ProgramRules program_rules;
  std::vector<std::string> program_arguments;  // those of the rules that are given
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;
  bool evaluator = false;
  std::optional<double> cpus;
  std::optional<double> ps_cpus;
  std::optional<std::uint64_t> memory_mib;
  std::optional<std::uint64_t> ps_memory_mib;
  std::uint64_t gpus = 0;
  std::uint16_t port = 2222;
  std::optional<std::uint16_t> ps_port;
  std::optional<std::uint16_t> metrics_port;
  bool pod_monitor = false;
  std::vector<std::string> volumes;
  std::optional<std::vector<std::string>> placement;
  std::optional<std::vector<std::string>> ps_placement;
  std::string secret;  // the engine's name of it; empty: none
  std::string gang;    // "kueue", "volcano"; empty: none
  std::string queue;
  std::string priority;
  std::string spread;
  std::string name_space;
  std::string domain;
  std::size_t serve = 0;
  std::uint16_t serve_port = 8501;
  std::optional<double> serve_cpus;
  std::optional<std::uint64_t> serve_memory_mib;
  std::string storage_uri;
  bool tensorboard = false;
  std::string tensorboard_image = "tensorflow/tensorflow";
  std::string options;  // a file; empty: none
  std::string output;   // a file; empty: standard output
  // From a DC/OS options file only:
  std::uint16_t tensorboard_port = 6006;
  render::Resources tensorboard_resources;
  std::string user;
  std::string network;
  std::size_t gpu_workers = 0;  // beside `workers`
  render::Resources gpu_worker_resources;
  std::string gpu_image;  // of these; empty: `image`
  std::string job_url;    // of the job that `command` then runs; empty: nothing is fetched
};

// Adds the flags above, which fill `flags`, to `app`; and the list of targets to its help.
void add_render_flags(CLI::App& app, RenderFlags& flags);

// Takes the word after `render` off the front of `arguments`.
[[nodiscard]] const render::Target& take_target(std::vector<std::string>& arguments);

// Reads the options file of the TensorFlow package that --options names. Sets what the command line
// and the cluster file leave open, in `flags` and in the training flags of `app`. Returns warnings
// about ignored options. Throws std::invalid_argument.
[[nodiscard]] std::vector<std::string> read_options_file(CLI::App& app, RenderFlags& flags);

struct RenderedFile {
  std::string path;
  std::string text;
};
// Returns the exit code. Throws roles::Failure.
[[nodiscard]] int write_rendered_file(const RenderedFile& file);

// Directories of the run; empty: none.
struct RunDirectories {
  std::string train_dir;  // its checkpoints
  std::string log_dir;    // its chief's files for TensorBoard
};

// `task_flags` apply to every task: "--train_steps=500". Throws std::invalid_argument with one
// sentence: the flag, its value, what is allowed.
[[nodiscard]] render::Deployment make_deployment(const RenderFlags& flags,
                                                 std::vector<std::string> task_flags,
                                                 const RunDirectories& directories);

// The flags of `disttf render` for a user's own program, and their checks.
void add_program_flags(FlagGroup& add, RenderFlags& flags);

// Returns the path of --program; empty: none is given. Throws std::invalid_argument if the flags do
// not fit together.
[[nodiscard]] std::string checked_program(const RenderFlags& flags);

}  // namespace disttf
