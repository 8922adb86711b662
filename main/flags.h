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

#include "main/own_data_flags.h"
#include "main/render_flags.h"
#include "main/setting_flags.h"
#include "roles/launch/shell/launcher.h"
#include "roles/monitor/shell/metrics_address.h"
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
  // Cluster
  std::string job_name;
  std::optional<std::int64_t> task_index;
  std::string ps_hosts;
  std::string worker_hosts;
  std::string chief_host;
  bool existing_servers = false;
  // Finding the cluster
  std::string resolver = "auto";
  std::optional<std::size_t> cluster_ps;
  std::optional<std::size_t> cluster_workers;
  bool cluster_chief = false;
  std::string task_hosts;
  std::uint16_t port_base = 2222;
  // Resolve
  bool print = false;
  bool json = false;
  // Model
  std::string model_hidden_units = "100";
  std::string model_input = "28x28x1";
  std::string input_layout;
  std::size_t model_classes = 10;
  // Launch
  std::size_t launch_ps = 1;
  std::size_t launch_workers = 2;
  bool launch_chief = false;
  bool launch_evaluator = false;
  std::string restart = "on-failure";
  std::uint64_t max_restarts = 10;
  std::string chaos;           // empty: none
  std::string launch_options;  // a file; empty: none
  roles::TaskLimits ps_limits;
  roles::TaskLimits trainer_limits;
  // Launch and the commands that manage it
  std::string control;  // a path; empty: the usual one
  std::optional<std::uint16_t> control_port;
  bool page = false;
  std::optional<std::uint16_t> page_port;
  std::string page_host;  // empty: 127.0.0.1
  std::vector<std::string> page_names;
  std::optional<std::size_t> update_workers;
  bool follow = false;
  double watch_s = 0;  // 0: once
  std::uint64_t trace_steps = 50;
  std::string trace_output;  // empty: where the chief puts it
  double every_s = 2;
  bool once = false;
  // Launch of a COMMAND
  std::string worker_logs = "*";
  std::string initializer;  // empty: none
  std::string finalizer;
  // A user's own program
  bool program = false;
  bool program_spare = true;
  std::uint64_t program_timeout_s = 60;       // 0: no limit
  std::uint64_t program_end_timeout_s = 600;  // 0: no limit
  std::uint64_t check_gradients = 0;          // 0: never
  std::size_t gpus_per_worker = 0;            // 0: none are assigned
  bool share_gpus = false;
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
  // Training: a run's settings, and who may join it
  WrittenSettings settings;
  std::size_t max_workers = 0;  // 0: as many as are listed
  // Checkpoints
  std::string train_dir;
  std::uint64_t save_steps = 0;
  std::uint64_t save_secs = 10;
  std::uint64_t max_to_keep = 5;
  bool sharded_checkpoint = false;
  // Evaluation and output
  std::uint64_t log_every = 500;
  bool print_weights_hash = false;
  bool print_classes = false;
  std::uint64_t evaluator_secs = 10;
  std::string keep_best;  // empty: none
  std::string metrics_file;
  std::string log_dir;  // empty: train_dir
  std::uint64_t summary_every = 100;
  std::uint64_t histogram_every = 0;
  std::string on_finish = "exit";
  // Data
  std::string dataset = "auto";
  OwnDataFlags own_data;
  std::string data_dir = "./input_data";
  std::vector<std::string> data_url;
  std::string ca_file;
  std::uint64_t download_timeout_s = 600;
  bool download_only = false;
  // Timeouts
  std::uint64_t start_timeout_s = 300;
  std::uint64_t peer_timeout_s = 60;
  std::uint64_t worker_timeout_s = 60;
  std::uint64_t heartbeat_timeout_s = 10;
  // Network
  std::string secret_file;
  std::string task_cert;
  std::string task_key;
  std::string task_ca;
  bool insecure = false;
  std::string transport = "auto";
  std::uint64_t threads = 0;  // 0: as many as suit the task
  // Metrics
  roles::MetricsOptions metrics;
  // Log
  std::string log_level = "info";
  std::string log_format = "text";
  // Confinement
  bool confine = true;
  // Testing
  std::uint64_t debug_delay_ms = 0;
  std::string chaos_frames;    // empty: none
  std::string debug_attempts;  // the same; at commas
  // Render
  RenderFlags render;
  // Between launch and its children
  int listen_fd = -1;
  int progress_fd = -1;
  // Between the supervisor of a user's program and the task: the socket to the supervisor
  int program_fd = -1;
};

// The app that parses `command`'s flags into `flags`, which must outlive it.
[[nodiscard]] std::unique_ptr<CLI::App> make_app(Command command, Flags& flags);

// Groups whose flags launch does not pass to its children: what to start, and a task's identity.
inline constexpr const char* kLaunchGroup = "Launch";
inline constexpr const char* kPageGroup = "Page";
inline constexpr const char* kCommandGroup = "Launch of any program: launch [FLAGS] -- COMMAND";
inline constexpr const char* kProgramGroup = "Your own program: --program -- COMMAND";
inline constexpr const char* kClusterGroup = "Cluster";
inline constexpr const char* kTransportGroup = "Transport and threads";
inline constexpr const char* kFindGroup =
    "Cluster found in the environment (docs/resolvers.md): what it leaves open";
// Hidden from --help.
inline constexpr const char* kHiddenGroup = "";

}  // namespace disttf
