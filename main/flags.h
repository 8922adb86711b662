// The flags of every command, as CLI11 options in groups, and their values.
//
// Each command is a CLI::App of its own, so that --help shows what that command takes and a
// --config file needs no section names.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "main/commands/launch_flags.h"
#include "main/flags/addresses.h"
#include "main/flags/cluster.h"
#include "main/flags/group_names.h"
#include "main/flags/process.h"
#include "main/flags/program.h"
#include "main/flags/run.h"
#include "main/render_flags.h"
#include "roles/serve/shell/serve_options.h"

namespace disttf {

enum class Command : std::uint8_t {
  kPs,
  kWorker,
  kChief,
  kEvaluator,
  kTrain,
  kLaunch,
  kServer,
  kPlus,
  kDownload,
  kCheckpoint,
  kModel,
  kData,
  kResolve,
  kDoctor,
  kVerify,
  kRender,
  kPredict,
  kServe,
  kHealthcheck,
  kExport,
  kImport,
  kLs,
  kCp,
  kPlot,
  kShow,
  kCompletion,
  kLicenses,
  kStatus,
  kTop,
  kTrace,
  kPage,
  kEndpoints,
  kLogs,
  kPods,
  kUpdate
};

struct CommandInfo {
  Command command;
  const char* name;
  const char* description;
};
// All commands, in the order in which the help lists them.
[[nodiscard]] const std::vector<CommandInfo>& commands();

// The values as written, before they are checked against one another.
struct Flags {
  ClusterFlags cluster;
  bool existing_servers = false;
  RunFlags run;
  PageFlags page;
  ProgramFlags program;
  InheritedFlags inherited;
  LaunchFlags launch;
  LogFlags log;
  // Resolve
  bool print = false;
  bool json = false;
  // Model
  std::string model_hidden_units = "100";
  std::string model_input = "28x28x1";
  std::string input_layout;
  std::size_t model_classes = 10;
  // The commands that manage a launch
  std::optional<std::size_t> update_workers;
  bool follow = false;
  double watch_s = 0;  // 0: once
  std::uint64_t trace_steps = 50;
  std::string trace_output;  // empty: where the chief puts it
  double every_s = 2;
  bool once = false;
  // Predict
  std::size_t predict_top = 1;
  std::string predict_labels;       // a file; empty: none
  std::size_t predict_threads = 0;  // 0: roles::processors()
  // Serve
  roles::ServeOptions serve;
  std::size_t serve_timeout_ms = 10'000;
  std::size_t serve_drain_s = 1;
  std::size_t serve_max_body_mib = 0;  // 0: by the model
  std::string input_range = "byte";    // of serve and predict
  std::vector<std::string> serve_host_names;
  std::size_t serve_threads = 0;  // 0: roles::processors()
  std::size_t serve_follow_secs = 10;
  std::uint64_t healthcheck_timeout_s = 5;
  std::string healthcheck_token_file;
  // Doctor
  std::optional<std::uint16_t> doctor_port;
  // Verify
  std::uint64_t verify_steps = 3;
  // Export
  std::string export_format;
  std::string export_output;  // empty: the usual one
  bool export_overwrite = false;
  // Plot
  std::string plot_output;  // empty: the terminal
  std::vector<std::string> plot_series;
  std::size_t copy_threads = 4;  // files that cp copies at once
  std::size_t plot_smooth = 1;
  std::string plot_x = "step";
  bool plot_log = false;
  // Plus
  bool verbose = false;
  std::uint64_t wait_s = 10;
  RenderFlags render;
};

// The app that parses `command`'s flags into `flags`, which must outlive it.
[[nodiscard]] std::unique_ptr<CLI::App> make_app(Command command, Flags& flags);

// Whether the command may have a COMMAND after "--".
[[nodiscard]] bool takes_command(Command command);

[[nodiscard]] std::string name_of_command(Command command);

}  // namespace disttf
