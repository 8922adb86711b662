// A deployment, independent of the engine: the tasks of one cluster with their resources and flags.
// `disttf render` makes it from its flags; each target's file beside this one turns it into a file
// for its engine.
//
// Pure values and functions. Every error is a std::invalid_argument with one sentence: the flag,
// its value, what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::render {

// The memory for targets that require a number, if none is given.
inline constexpr std::uint64_t kDefaultMemoryMib = 512;

// The CPUs that a task may be given.
inline constexpr double kLeastCpus = 0.01;
inline constexpr double kMostCpus = 1024;

// The resources of one task. The engine decides what is not given, if it has a default.
struct Resources {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory_mib;
  std::uint64_t gpus = 0;
};

// The tasks of one job, which have the same resources.
struct TaskGroup {
  net::Job job = net::Job::kWorker;
  std::size_t count = 1;
  std::size_t first = 0;      // the number of its first task within the job
  std::uint16_t port = 2222;  // of each task; of the first if tasks may share a machine
  Resources resources;
  std::vector<std::string> placement;  // in the target's syntax: see its file
  std::string image{};                 // of a user's program; empty: the deployment's
};

// The user and the group of the image's processes (Containerfile, deploy/packages/image.py).
inline constexpr int kImageUser = 65532;

// A directory that tasks see at `path`. `source`: a path of the machine, or the name of a volume
// that the engine manages.
struct Volume {
  std::string source;
  std::string path;
  bool read_only = false;
  [[nodiscard]] bool is_host_path() const { return source.starts_with('/'); }
};

// A TensorBoard task: its page is at `port` of the host that runs it.
struct TensorBoard {
  std::string image;
  std::string directory;  // the chief's output, in one of the volumes
  std::uint16_t port = 6006;
  Resources resources;
};

// Serving tasks beside the training: `disttf serve` of its checkpoints.
struct Serving {
  std::size_t replicas = 0;  // 0: none
  std::uint16_t port = 8501;
  Resources resources;
  std::vector<std::string> placement;  // as in TaskGroup
  std::string directory;               // --train_dir; empty: none
  std::string storage_uri;             // KServe: URI of the model; empty: `directory`
};

// The scheduler that starts all pods of a run or none, so that two runs with half of their pods do
// not wait for each other.
enum class Gang : std::uint8_t { kNone, kKueue, kVolcano };

// Scheduling of pods in Kubernetes. Empty fields are left to its defaults.
struct Scheduling {
  Gang gang = Gang::kNone;
  std::string queue;     // a queue of the gang scheduler
  std::string priority;  // the name of a PriorityClass
  std::string spread;    // a label of nodes, over whose values pods are spread
};

struct Deployment {
  std::string name = "mnist";
  std::string image;              // empty: the target's default, for most of them "disttf"
  std::string program;            // disttf's path on every machine, or in the image of `command`
  std::vector<TaskGroup> groups;  // ps, chief, worker, evaluator; only those that have tasks
  std::vector<Volume> volumes;
  std::string name_space;  // of Kubernetes; empty: the current one of kubectl
  std::string domain;      // suffix of the engine's names; empty: the target's default
  std::string user;        // DC/OS: the user of the tasks; empty: the engine's default
  std::string network;     // DC/OS: a virtual network's name; empty: the host's
  std::optional<std::uint16_t> metrics_port = {};  // of each task; `flags` contain it, too
  bool pod_monitor = false;
  std::string secret{};            // the engine's name of the run's secret; empty: none
  std::vector<std::string> flags;  // of every task: "--train_steps=500"
  Scheduling scheduling{};
  std::optional<TensorBoard> tensorboard{};
  Serving serving{};
  // A user's own program, which computes for the trainers (user_program.h): its words; empty: none.
  std::vector<std::string> command{};
  std::vector<std::string> command_flags{};  // of the task beside it: "--program_spare=false"
  std::string job_url{};  // what the engine fetches for it into its working directory; empty: none
  std::string disttf_image{};               // of the tasks without it; empty: "disttf"
  std::string result_word{};                // the first word of the result line: "MNIST"
  std::string result_measure = "accuracy";  // the word after it

  // nullptr: the job has no tasks.
  [[nodiscard]] const TaskGroup* group(net::Job job) const;
  [[nodiscard]] std::size_t task_count() const;
  // The volume that contains a directory, as tasks see it; nullptr: none.
  [[nodiscard]] const Volume* volume_with(std::string_view directory) const;
  // Whether containers must run as root, if the engine keeps the owners that volumes and secrets
  // have on the machine: the image's user could not write to the former or read the latter.
  [[nodiscard]] bool wants_root() const;
  // `the line "MNIST accuracy: ..."`
  [[nodiscard]] std::string result_line() const {
    if (!command.empty()) {
      return "the chief's last line";
    }
    return "the line \"" + result_word + " " + result_measure + ": ...\"";
  }
};

// One task at the address that a target gives it.
struct PlacedTask {
  net::TaskId id;
  const TaskGroup* group = nullptr;  // points into the Deployment
  net::Address address;
  // The words after the program's name: the role, the index, the lists, the flags.
  std::vector<std::string> arguments;
  [[nodiscard]] std::string name() const;  // "worker-1"
};

// Whether an engine restarts every task that exits, even with code 0. Such tasks must stay up.
enum class Family : std::uint8_t { kRunsToCompletion, kKeepsAlive };

// The address of a task on a target.
struct Place {
  std::string host;
  std::size_t port = 0;
};
// Sets the address of `task`, whose name() and group are set. `ordinal` counts all tasks from 0.
using PlaceOf = std::function<Place(const PlacedTask& task, std::size_t ordinal)>;

// All tasks, in the order of the groups. Throws if a port is above 65535.
[[nodiscard]] std::vector<PlacedTask> place(const Deployment& deployment, Family family,
                                            const PlaceOf& place_of);

// The arguments of all tasks of a job, for engines that number tasks themselves: "--task_index=" +
// `index`, which the engine replaces.
[[nodiscard]] std::vector<std::string> arguments_of_group(const std::vector<PlacedTask>& tasks,
                                                          const TaskGroup& group,
                                                          std::string_view index);

// ---- Serving ----

// The words after the program's name of a task that serves `directory`.
[[nodiscard]] std::vector<std::string> serving_arguments(const Deployment& deployment,
                                                         const std::string& directory);

// The deployment of the serving tasks: of the volumes only that of --train_dir, read-only, and no
// metrics port but the serving port. Throws if --train_dir is in no volume, or in one that the
// chief cannot write to.
[[nodiscard]] Deployment serving_part(const Deployment& deployment);

// The paths of health checks: whether a serving task runs, and whether its model is loaded. The
// status of a GET is the answer.
inline constexpr const char* kLivePath = "/v2/health/live";
inline constexpr const char* kReadyPath = "/v2/health/ready";
inline constexpr int kLiveSeconds = 10;  // between two checks
inline constexpr int kReadySeconds = 2;

// ---- Checks ----

// Throws "--name: \"Mnist\" is not " + `why`. `field` has no hyphens.
[[noreturn]] void refuse(std::string_view field, std::string_view value, const std::string& why);

// Throws if the text has line ends or other control characters.
void check_text(std::string_view field, const std::string& text);
// Throws if the text has other characters than letters, digits and `besides_letters`. `allowed` is
// the end of the message.
void check_characters(std::string_view field, const std::string& text,
                      std::string_view besides_letters, const char* allowed);

// Whether the text is a name of DNS-1035: lower-case letters, digits and hyphens, a letter first,
// no hyphen last. All engines accept such names.
[[nodiscard]] bool is_dns_label(std::string_view text);

// Throws if the longest name that this target makes of --name has more than `most` characters.
// `longest` is such a name, e.g. "mnist-worker-11".
void check_length(const Deployment& deployment, const std::string& longest, std::size_t most,
                  std::string_view what_for);
// The longest name of a task, such as "worker-11".
[[nodiscard]] std::string longest_task_name(const Deployment& deployment);

// Each throws if the deployment uses a feature that `target` lacks.
void refuse_evaluator(const Deployment& deployment, std::string_view target);
void refuse_gpus(const Deployment& deployment, std::string_view target);
void refuse_placement(const Deployment& deployment, std::string_view target);
void refuse_named_volumes(const Deployment& deployment, std::string_view target);
void refuse_volumes(const Deployment& deployment, std::string_view target);
void refuse_resources(const Deployment& deployment, std::string_view target);
void refuse_image(const Deployment& deployment, std::string_view target);
// Tasks that share a machine would need the same port for their metrics.
void refuse_metrics(const Deployment& deployment, std::string_view target);
void refuse_pod_monitor(const Deployment& deployment, std::string_view target);
// `why`: "whose jobs end".
void refuse_serving(const Deployment& deployment, std::string_view target, std::string_view why);
// For targets whose tasks share machines: all ports are counted from one base.
void refuse_ps_port(const Deployment& deployment, std::string_view target);

// "zone=a" -> {"zone", "a"}. Throws if the text is not KEY=VALUE.
struct KeyValue {
  std::string key;
  std::string value;
};
[[nodiscard]] KeyValue read_placement(const std::string& text);

// The text as one word of a shell's command, in quotes if necessary.
[[nodiscard]] std::string shell_word(const std::string& text);

// "1.5", "2"
[[nodiscard]] std::string cpus_text(double cpus);

// `text` with `replacement` for every `found`: engines that expand $NAME in arguments need $$ for
// $.
[[nodiscard]] std::string replaced(std::string text, std::string_view found,
                                   std::string_view replacement);

}  // namespace disttf::render
