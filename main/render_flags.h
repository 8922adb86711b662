// The flags of `disttf render`, and the deployment that they describe.
//
// A cluster file (--cluster) is a TOML file of the same names: one way to say a thing, one check,
// one sentence when it is wrong.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "main/render/deployment.h"
#include "main/render/target.h"

namespace disttf {

// What was written, before any of it is checked against the rest.
struct RenderFlags {
  std::string name = "mnist";
  std::string image;
  std::string program;
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
  std::string secret;  // what the engine calls it; empty: none
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
  // Of a DC/OS options file alone:
  std::uint16_t tensorboard_port = 6006;
  render::Resources tensorboard_resources;
  std::string user;
  std::string network;
};

// Of the help: not handed to the tasks.
inline constexpr const char* kRenderGroup = "Deployment";

// The flags above as options of `app`, which fill `flags`; the targets below its help.
void add_render_flags(CLI::App& app, RenderFlags& flags);

// Takes the word behind `render` off the front of `arguments`.
[[nodiscard]] const render::Target& take_target(std::vector<std::string>& arguments);

// Reads the options file of the TensorFlow package that --options names and fills in what the
// command line and the cluster file have left open: in `flags`, and in the training flags of `app`.
// Returns what was left aside. Throws std::invalid_argument.
[[nodiscard]] std::vector<std::string> read_options_file(CLI::App& app, RenderFlags& flags);

// Of the run; empty: none.
struct RunDirectories {
  std::string train_dir;  // its checkpoints
  std::string log_dir;    // what its chief writes for TensorBoard
};

// `task_flags`: "--train_steps=500", for every task. Throws std::invalid_argument with one
// sentence: the flag, its value, what is allowed.
[[nodiscard]] render::Deployment make_deployment(const RenderFlags& flags,
                                                 std::vector<std::string> task_flags,
                                                 const RunDirectories& directories);

}  // namespace disttf
