// What is to be deployed, whoever runs it: the tasks of one cluster with their resources, and the
// flags that each of them gets. `disttf render` makes it from its flags; the files of the targets
// beside this one turn it into a file for their engine.
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

// What a target gets that wants a number where none is given.
inline constexpr std::uint64_t kDefaultMemoryMib = 512;

// Of one task. What is not given is left to the engine where that has a default of its own.
struct Resources {
  std::optional<double> cpus;
  std::optional<std::uint64_t> memory_mib;
  std::uint64_t gpus = 0;
};

// The tasks of one job. All of them have the same resources.
struct TaskGroup {
  net::Job job = net::Job::kWorker;
  std::size_t count = 1;
  std::uint16_t port = 2222;  // of each, or of the first where tasks may share a machine
  Resources resources;
  std::vector<std::string> placement;  // as the target writes it: see its file
};

// A directory that the tasks see as `path`. `source`: a path of the machine, or the name of a
// volume that the engine keeps.
// The user and the group of the image's processes (Containerfile, deploy/packages/image.py).
inline constexpr int kImageUser = 65532;

struct Volume {
  std::string source;
  std::string path;
  bool read_only = false;
  [[nodiscard]] bool is_host_path() const { return source.starts_with('/'); }
};

// A task that shows the run in a browser: its page is at `port` of wherever the engine runs it.
struct TensorBoard {
  std::string image;
  std::string directory;  // that the chief writes to, in one of the volumes
  std::uint16_t port = 6006;
  Resources resources;
};

// Tasks beside the training that answer requests: `disttf serve` of its checkpoints.
struct Serving {
  std::size_t replicas = 0;  // 0: nobody has asked for them
  std::uint16_t port = 8501;
  Resources resources;
  std::vector<std::string> placement;  // as a TaskGroup's
  std::string directory;               // --train_dir; empty: there is none
  std::string storage_uri;             // KServe: where the model lies; empty: in `directory`
};

// Who places all pods of a run or none of them, so that two halves of two runs do not wait for each
// other.
enum class Gang : std::uint8_t { kNone, kKueue, kVolcano };

// How Kubernetes is to place pods. What is empty is left to it.
struct Scheduling {
  Gang gang = Gang::kNone;
  std::string queue;     // of the gang's
  std::string priority;  // the name of a PriorityClass
  std::string spread;    // a label of nodes, over whose values the pods are spread
};

struct Deployment {
  std::string name = "mnist";
  std::string image;              // empty: the target's default, for most of them "disttf"
  std::string program;            // of a target without images: disttf's path on every machine
  std::vector<TaskGroup> groups;  // ps, chief, worker, evaluator; only those that have tasks
  std::vector<Volume> volumes;
  std::string name_space;  // Kubernetes' namespace; empty: that of whoever applies it
  std::string domain;      // what the engine's names end in; empty: the target's own
  std::string user;        // DC/OS: whom the tasks run as; empty: the engine's default
  std::string network;     // DC/OS: a virtual network's name; empty: the host's
  std::optional<std::uint16_t> metrics_port = {};  // where each task exports them; it is in `flags`
  bool pod_monitor = false;
  std::string secret{};  // what the engine calls the run's secret; empty: the run has none
  std::vector<std::string> flags;  // "--train_steps=500": what every task gets
  Scheduling scheduling{};
  std::optional<TensorBoard> tensorboard{};
  Serving serving{};
  std::string result_word{};                // what the result line begins with: "MNIST"
  std::string result_measure = "accuracy";  // what follows there

  // nullptr: it has none.
  [[nodiscard]] const TaskGroup* group(net::Job job) const;
  [[nodiscard]] std::size_t task_count() const;
  // The one in which a directory lies, as tasks see it. nullptr: none.
  [[nodiscard]] const Volume* volume_with(std::string_view directory) const;
  // Whether containers must run as root where the engine leaves the owners of volumes and secrets
  // as they are on the machine: the image's user could not write to these or read those.
  [[nodiscard]] bool wants_root() const;
  // `the line "MNIST accuracy: ..."`
  [[nodiscard]] std::string result_line() const {
    return "the line \"" + result_word + " " + result_measure + ": ...\"";
  }
};

// One task at the place that a target gives it.
struct PlacedTask {
  net::TaskId id;
  const TaskGroup* group = nullptr;  // of the Deployment
  net::Address address;
  // The words behind the program's name: the role, the index, the lists, the flags.
  std::vector<std::string> arguments;
  [[nodiscard]] std::string name() const;  // "worker-1"
};

// Whether an engine starts again whatever ends, also with code 0. Such a task must stay up.
enum class Family : std::uint8_t { kRunsToCompletion, kKeepsAlive };

// Where a target puts a task.
struct Place {
  std::string host;
  std::size_t port = 0;
};
// `task.name()`, `task.group` and the ordinal, which counts all tasks from 0, are there.
using PlaceOf = std::function<Place(const PlacedTask& task, std::size_t ordinal)>;

// All tasks, in the order of the groups. Throws when a port is above 65535.
[[nodiscard]] std::vector<PlacedTask> place(const Deployment& deployment, Family family,
                                            const PlaceOf& place_of);

// The arguments of all tasks of a job at once, for engines that number them themselves:
// "--task_index=" + `index`, which the engine replaces.
[[nodiscard]] std::vector<std::string> arguments_of_group(const std::vector<PlacedTask>& tasks,
                                                          const TaskGroup& group,
                                                          std::string_view index);

// ---- Serving ----

// The words behind the program's name of a task that serves what lies in `directory`.
[[nodiscard]] std::vector<std::string> serving_arguments(const Deployment& deployment,
                                                         const std::string& directory);

// The deployment of the serving tasks alone: of the volumes the one that --train_dir lies in, to be
// read, and no metrics but those at the port that they answer at. Throws when --train_dir is in no
// volume, or in one that the chief cannot write to.
[[nodiscard]] Deployment serving_part(const Deployment& deployment);

// What to ask whether such a task runs, and whether it has a model that answers. Both by GET; the
// status says it.
inline constexpr const char* kLivePath = "/v2/health/live";
inline constexpr const char* kReadyPath = "/v2/health/ready";
inline constexpr int kLiveSeconds = 10;  // between two questions
inline constexpr int kReadySeconds = 2;

// ---- Checks ----

// "--name: \"Mnist\" is not a DNS label: ...". `field` without its hyphens.
[[noreturn]] void refuse(std::string_view field, std::string_view value, const std::string& why);

// A name as DNS-1035 has it: lower-case letters, digits and hyphens, a letter first, no hyphen
// last. All engines take that.
[[nodiscard]] bool is_dns_label(std::string_view text);

// Throws when the longest name that this target makes of --name has more than `most` characters.
// `longest`: such a name, e.g. "mnist-worker-11".
void check_length(const Deployment& deployment, const std::string& longest, std::size_t most,
                  std::string_view what_for);
// "worker-11", of all groups the longest.
[[nodiscard]] std::string longest_task_name(const Deployment& deployment);

// Throws when something is asked for that `target` does not have.
void refuse_evaluator(const Deployment& deployment, std::string_view target);
void refuse_gpus(const Deployment& deployment, std::string_view target);
void refuse_placement(const Deployment& deployment, std::string_view target);
void refuse_named_volumes(const Deployment& deployment, std::string_view target);
void refuse_volumes(const Deployment& deployment, std::string_view target);
void refuse_resources(const Deployment& deployment, std::string_view target);
void refuse_image(const Deployment& deployment, std::string_view target);
// Tasks that share a machine would want the same port for their metrics.
void refuse_metrics(const Deployment& deployment, std::string_view target);
void refuse_pod_monitor(const Deployment& deployment, std::string_view target);
// `why`: "whose jobs end".
void refuse_serving(const Deployment& deployment, std::string_view target, std::string_view why);
// A second port base: where each task has a port of its own they are counted from one.
void refuse_ps_port(const Deployment& deployment, std::string_view target);

// "zone=a" -> {"zone", "a"}. Throws when it is not KEY=VALUE.
struct KeyValue {
  std::string key;
  std::string value;
};
[[nodiscard]] KeyValue read_placement(const std::string& text);

// "1.5", "2"
[[nodiscard]] std::string cpus_text(double cpus);

// `text` with every `found` replaced: engines that expand $NAME in arguments want $$ for $.
[[nodiscard]] std::string replaced(std::string text, std::string_view found,
                                   std::string_view replacement);

}  // namespace disttf::render
