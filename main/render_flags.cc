#include "main/render_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "data/output_file.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "main/options_file.h"
#include "main/render/dcos_options.h"
#include "main/render/user_program.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "storage/store/core/store_url.h"

namespace disttf {
namespace {

using render::check_characters;
using render::check_text;
using render::refuse;

// A bound against typing errors: no target needs it.
constexpr std::uint64_t kMostTasks = 1000;  // of one job
constexpr std::uint64_t kMostGpus = 64;

void add_tasks(FlagGroup& add, RenderFlags& flags) {
  // At least one ps: make_groups() relies on it.
  add.number("--ps,-s", flags.ps, "N", 1, kMostTasks, "parameter servers");
  add.number("--workers,-w", flags.workers, "N", 0, kMostTasks, "workers");
  add.toggle("--chief", flags.chief, "add a separate chief, which also trains");
  add.toggle("--evaluator", flags.evaluator,
             "add an [evaluator](evaluator.md): compose, jobset, kubernetes, nomad, statefulset, "
             "swarm, tfjob and trainjob only");
}

void add_resources(FlagGroup& add, RenderFlags& flags) {
  add.decimal("--cpus", flags.cpus, "N", "CPUs of each task [the engine's default]");
  add.decimal("--ps_cpus", flags.ps_cpus, "N", "CPUs of each ps [as `--cpus`]");
  add.number("--memory", flags.memory_mib, "MIB", 1, kMostMemoryMib,
             "MiB of each task [the engine's default]");
  add.number("--ps_memory", flags.ps_memory_mib, "MIB", 1, kMostMemoryMib,
             "MiB of each ps [as `--memory`]");
  add.decimal("--serve_cpus", flags.serve_cpus, "N", "CPUs of each serving task [as `--cpus`]");
  add.number("--serve_memory", flags.serve_memory_mib, "MIB", 1, kMostMemoryMib,
             "MiB of each serving task [as `--memory`]");
  add.number("--gpus", flags.gpus, "N", 0, kMostGpus,
             "GPUs of each trainer, for the program of `--program`; ps get none");
}

void add_places(FlagGroup& add, RenderFlags& flags) {
  add.number("--port", flags.port, "N", 1, kMostPort,
             "port of each task; the first port if tasks share machines");
  add.number("--ps_port", flags.ps_port, "N", 1, kMostPort, "port of each ps [as `--port`]");
  add.number("--metrics_port", flags.metrics_port, "N", 1, kMostPort,
             "port of each task's [metrics](metrics.md); pods get the annotations for scrapers "
             "[none]");
  add.toggle("--pod_monitor", flags.pod_monitor,
             "Kubernetes targets: add a PodMonitor for the Prometheus Operator");
  add.list("--volumes", flags.volumes, "SOURCE:PATH[:ro],...",
           "`SOURCE:PATH` or `SOURCE:PATH:ro`: host directories or named volumes, mounted at PATH");
  add.list("--placement", flags.placement, "PLACE,...",
           "placement constraints of tasks in the engine's terms: `KEY=VALUE`");
  add.list("--ps_placement", flags.ps_placement, "PLACE,...",
           "placement constraints of ps [as `--placement`]");
}

void add_serving(FlagGroup& add, RenderFlags& flags) {
  add.number("--serve", flags.serve, "N", 0, kMostTasks,
             "number of tasks that [serve](targets/README.md#serving) the checkpoints of "
             "`--train_dir`, which must be below a directory of `--volumes`");
  add.number("--serve_port", flags.serve_port, "N", 1, kMostPort, "port of the serving tasks");
  add.text("--storage_uri", flags.storage_uri, "URI",
           "kserve: URI of the model [the volume claim of `--train_dir`]");
}

void add_scheduling(FlagGroup& add, RenderFlags& flags) {
  add.choice("--gang", flags.gang, "NAME", {"kueue", "volcano"},
             "`kueue`, `volcano`: scheduler that places [all pods of a run or "
             "none](targets/README.md#gang-scheduling) [each pod is placed alone]");
  add.text("--queue", flags.queue, "NAME", "queue of `--gang`");
  add.text("--priority", flags.priority, "NAME", "Kubernetes: PriorityClass of the pods");
  add.text("--spread", flags.spread, "LABEL",
           "Kubernetes: node label, such as kubernetes.io/hostname, over whose values pods are "
           "spread if possible");
}

render::Volume read_volume(const std::string& text) {
  constexpr const char* kAllowed =
      "SOURCE:PATH or SOURCE:PATH:ro, where PATH begins with / and SOURCE does too or is a name of "
      "lower-case letters, digits and hyphens";
  std::string rest = text;
  render::Volume volume;
  // Taken off first: what remains has one colon.
  if (rest.ends_with(":ro")) {
    volume.read_only = true;
    rest.erase(rest.size() - 3);
  }
  const std::size_t colon = rest.find(':');
  if (colon == std::string::npos) {
    refuse("volumes", text, kAllowed);
  }
  volume.source = rest.substr(0, colon);
  volume.path = rest.substr(colon + 1);
  // Rejects a further colon, too. tfmesos writes these texts into a script without quotes.
  check_characters("volumes", volume.source + volume.path, "/._-", kAllowed);
  if (!volume.path.starts_with('/') ||
      !(volume.is_host_path() || render::is_dns_label(volume.source))) {
    refuse("volumes", text, kAllowed);
  }
  return volume;
}

std::optional<double> checked_cpus(std::string_view field, std::optional<double> cpus) {
  if (cpus && (*cpus < render::kLeastCpus || *cpus > render::kMostCpus)) {
    refuse(field, render::cpus_text(*cpus),
           "from " + render::cpus_text(render::kLeastCpus) + " to " +
               render::cpus_text(render::kMostCpus));
  }
  return cpus;
}

std::vector<std::string> checked_placement(std::string_view field,
                                           const std::vector<std::string>& placement) {
  for (const std::string& text : placement) {
    check_text(field, text);
    // A list like --placement= has one empty entry.
    if (text.empty()) {
      refuse(field, text, "KEY=VALUE");
    }
  }
  return placement;
}

std::vector<render::TaskGroup> make_groups(const RenderFlags& flags) {
  const std::vector<std::string> placement =
      checked_placement("placement", flags.placement.value_or(std::vector<std::string>{}));
  const render::Resources common{.cpus = checked_cpus("cpus", flags.cpus),
                                 .memory_mib = flags.memory_mib};
  render::Resources of_ps = common;
  // Each value falls back by itself: --ps_memory alone keeps --cpus.
  of_ps.cpus = flags.ps_cpus ? checked_cpus("ps_cpus", flags.ps_cpus) : common.cpus;
  of_ps.memory_mib = flags.ps_memory_mib ? flags.ps_memory_mib : common.memory_mib;
  render::Resources of_trainers = common;
  of_trainers.gpus = flags.gpus;
  std::vector<render::TaskGroup> groups;
  // The order of the groups is part of the interface: targets count ports and place comments by it.
  const auto add = [&](net::Job job, std::size_t count, const render::Resources& resources) {
    if (count != 0) {
      groups.push_back({.job = job,
                        .count = count,
                        .port = flags.port,
                        .resources = resources,
                        .placement = placement});
    }
  };
  add(net::Job::kPs, flags.ps, of_ps);
  // The first group is that of the ps: --ps is at least 1.
  groups.front().port = flags.ps_port.value_or(flags.port);
  if (flags.ps_placement) {
    groups.front().placement = checked_placement("ps_placement", *flags.ps_placement);
  }
  add(net::Job::kChief, flags.chief ? 1 : 0, of_trainers);
  add(net::Job::kWorker, flags.workers, of_trainers);
  if (flags.gpu_workers != 0) {
    render::Resources resources = flags.gpu_worker_resources;
    resources.cpus = checked_cpus("cpus", resources.cpus);
    add(net::Job::kWorker, flags.gpu_workers, resources);
    groups.back().first = flags.workers;
    groups.back().image = flags.gpu_image;
  }
  // Before the evaluator is added, which does not train.
  if (groups.size() == 1) {
    throw std::invalid_argument("--workers: must be at least 1 without --chief (got 0)");
  }
  add(net::Job::kEvaluator, flags.evaluator ? 1 : 0, common);
  return groups;
}

render::Serving make_serving(const RenderFlags& flags, const std::string& train_dir) {
  return {.replicas = flags.serve,
          .port = flags.serve_port,
          .resources = {.cpus = flags.serve_cpus ? checked_cpus("serve_cpus", flags.serve_cpus)
                                                 : checked_cpus("cpus", flags.cpus),
                        .memory_mib =
                            flags.serve_memory_mib ? flags.serve_memory_mib : flags.memory_mib},
          // make_groups() has checked the same list.
          .placement = flags.placement.value_or(std::vector<std::string>{}),
          .directory = train_dir,
          .storage_uri = flags.storage_uri};
}

render::Scheduling make_scheduling(const RenderFlags& flags) {
  constexpr const char* kName =
      "a name: lower-case letters, digits, hyphens and dots, a letter first";
  const auto check_name = [](std::string_view field, const std::string& name) {
    if (!name.empty() && !render::is_dns_label(render::replaced(name, ".", "-"))) {
      refuse(field, name, kName);
    }
  };
  check_name("queue", flags.queue);
  check_name("priority", flags.priority);
  check_characters("spread", flags.spread, "/._-", "a label of nodes: letters, digits and /._-");
  if (flags.gang.empty() && !flags.queue.empty()) {
    refuse("queue", flags.queue, "allowed without --gang");
  }
  if (flags.gang == "kueue" && flags.queue.empty()) {
    throw std::invalid_argument("--queue: missing; --gang kueue needs the name of a LocalQueue");
  }
  constexpr std::size_t kMostLabel = 63;
  if (flags.gang == "kueue" && flags.queue.size() > kMostLabel) {
    refuse("queue", flags.queue,
           "short enough: kueue uses it as a label, which has at most 63 characters");
  }
  return {.gang = flags.gang == "kueue"     ? render::Gang::kKueue
                  : flags.gang == "volcano" ? render::Gang::kVolcano
                                            : render::Gang::kNone,
          .queue = flags.queue,
          .priority = flags.priority,
          .spread = flags.spread};
}

// The TensorBoard task reads the chief's files if both mount their directory from a volume.
render::TensorBoard make_tensorboard(const RenderFlags& flags, const render::Deployment& deployment,
                                     const std::string& log_dir) {
  check_characters("tensorboard_image", flags.tensorboard_image, "._:/@-",
                   "the name of an image: letters, digits and ._:/@-");
  check_characters("log_dir", log_dir, "/._-", "a path of letters, digits and /._-");
  // Else each task writes to a file system of its own, and the page would stay empty.
  if (deployment.volume_with(log_dir) == nullptr) {
    throw std::invalid_argument(
        "--tensorboard: needs --log_dir or --train_dir in a directory of --volumes");
  }
  return {.image = flags.tensorboard_image,
          .directory = log_dir,
          .port = flags.tensorboard_port,
          .resources = flags.tensorboard_resources};
}

// The list of targets below the flags in --help.
std::string target_list() {
  std::string text = "\nTargets:\n";
  for (const render::Target& target : render::targets()) {
    const std::string name = target.name;
    text += "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') +
            target.description + "\n";
  }
  return text + "A cluster file takes the same names: name = \"mnist\", workers = 4, ...";
}

}  // namespace

void add_render_flags(CLI::App& app, RenderFlags& flags) {
  FlagGroup add(app, kRenderGroup);
  // For the help; the word is taken off the command line before the flags are read.
  std::vector<std::string> targets;
  for (const render::Target& target : render::targets()) {
    targets.emplace_back(target.name);
  }
  app.add_option("TARGET")->description("One of those below")->check(one_of(std::move(targets)));
  app.footer(target_list());
  add.text("--name", flags.name, "NAME", "name of the run: lower-case letters, digits, hyphens");
  add.text("--image", flags.image, "IMAGE",
           "the container image, with a COMMAND that of the trainers [`disttf`, with tfmesos its "
           "own]");
  add_program_flags(add, flags);
  flags.program_rules.add_to(app, kRenderGroup);
  add_tasks(add, flags);
  add_resources(add, flags);
  add_places(add, flags);
  add_serving(add, flags);
  add_scheduling(add, flags);
  add.text("--secret", flags.secret, "NAME",
           "the engine's name of [the run's secret](targets/README.md#a-secret); compose, slurm: a "
           "file");
  add.text("--namespace", flags.name_space, "NAME", "Kubernetes namespace");
  add.text("--domain", flags.domain, "NAME", "domain of task names, if the engine allows a choice");
  add.toggle(
      "--tensorboard", flags.tensorboard,
      "marathon, dcos: add a TensorBoard task for `--log_dir` or `--train_dir`, at port 6006");
  add.text("--tensorboard_image", flags.tensorboard_image, "IMAGE",
           "image of the TensorBoard task");
  add.text("--options", flags.options, "FILE",
           "dcos: options file of the TensorFlow package, JSON");
  add.text("--output", flags.output, "FILE", "output file [standard output]");
}

const render::Target& take_target(std::vector<std::string>& arguments) {
  const std::string names = net::joined(render::targets(), ", ", &render::Target::name);
  if (arguments.empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument("render: the target is missing; one of " + names);
  }
  const render::Target* const target = render::find_target(arguments.front());
  if (target == nullptr) {
    throw std::invalid_argument("render: " + net::quoted(arguments.front()) +
                                " is not a target; one of " + names);
  }
  arguments.erase(arguments.begin());
  return *target;
}

std::vector<std::string> read_options_file(CLI::App& app, RenderFlags& flags) {
  if (flags.options.empty()) {
    return {};
  }
  using render::DcosTrains;
  const render::DcosOptions options = render::read_dcos_options(
      read_options_text(flags.options), !flags.command.empty() ? DcosTrains::kCommand
                                        : flags.has_program    ? DcosTrains::kJob
                                                               : DcosTrains::kOwnModel);
  if (!options.command.empty()) {
    flags.command = options.command;
    flags.job_url = options.job_url;
  }
  // Only the command line wins over the file; a default does not.
  const auto fill = [&app](const char* flag, auto& place, const auto& value) {
    if (app.get_option(flag)->count() == 0) {
      place = value;
    }
  };
  fill("--name", flags.name, options.name);
  fill("--ps", flags.ps, options.ps.count);
  fill("--workers", flags.workers, options.workers.count);
  fill("--cpus", flags.cpus, options.workers.cpus);
  fill("--ps_cpus", flags.ps_cpus, options.ps.cpus);
  fill("--memory", flags.memory_mib, options.workers.memory_mib);
  fill("--ps_memory", flags.ps_memory_mib, options.ps.memory_mib);
  fill("--port", flags.port, options.workers.port);
  fill("--ps_port", flags.ps_port, options.ps.port);
  fill("--placement", flags.placement, options.workers.placement);
  fill("--ps_placement", flags.ps_placement, options.ps.placement);
  fill("--image", flags.image, options.image);
  if (options.gpu_workers) {
    flags.gpu_workers = options.gpu_workers->count;
    flags.gpu_worker_resources = {.cpus = options.gpu_workers->cpus,
                                  .memory_mib = options.gpu_workers->memory_mib,
                                  .gpus = options.gpu_workers->gpus};
    flags.gpu_image = options.gpu_image;
  }
  // No flag sets these two: they mean something to DC/OS only.
  flags.user = options.user;
  flags.network = options.network;
  if (options.tensorboard) {
    // Not set to false otherwise: --tensorboard of the command line stays.
    fill("--tensorboard", flags.tensorboard, true);
    flags.tensorboard_port = options.tensorboard->port;
    flags.tensorboard_resources = {.cpus = options.tensorboard->cpus,
                                   .memory_mib = options.tensorboard->memory_mib};
  }
  for (const auto& [key, value] : options.flags) {
    set_training_flag(app, key, value);
  }
  if (!options.train_dir.empty()) {
    set_training_flag(app, "train_dir", options.train_dir);
    // All tasks need this directory: each mounts it from its host at the same path.
    if (!roles::is_store_url(std::string_view(options.train_dir))) {
      flags.volumes.push_back(options.train_dir + ":" + options.train_dir);
    }
  }
  return options.warnings;
}

int write_rendered_file(const RenderedFile& file) {
  try {
    data::write_output_file(file.path, file.text);
  } catch (const std::system_error& error) {
    // Not std::invalid_argument, which would exit as for a wrong flag: the file may be writable on
    // the next try.
    throw roles::Failure(roles::kError, "--output: " + std::string(error.what()));
  }
  return roles::kDone;
}

namespace {

// `task_flags` with the flags of the metrics.
std::vector<std::string> with_metrics(const RenderFlags& flags,
                                      std::vector<std::string> task_flags) {
  if (!flags.metrics_port) {
    if (flags.pod_monitor) {
      throw std::invalid_argument("--pod_monitor: true is not allowed without --metrics_port");
    }
    return task_flags;
  }
  // A task listens on both ports; targets that count ports up from one check the others themselves.
  for (const std::uint16_t taken : {flags.port, flags.ps_port.value_or(flags.port)}) {
    if (taken == *flags.metrics_port) {
      refuse("metrics_port", std::to_string(taken), "free: the tasks listen on it");
    }
  }
  task_flags.push_back("--metrics_port=" + std::to_string(*flags.metrics_port));
  // The scraper is on another machine; the default address is loopback.
  task_flags.emplace_back("--metrics_host=all");
  return task_flags;
}

}  // namespace

render::Deployment make_deployment(const RenderFlags& flags, std::vector<std::string> task_flags,
                                   const RunDirectories& directories) {
  // First: every target builds host names, labels or file contents from the name without quoting
  // it.
  if (!render::is_dns_label(flags.name)) {
    refuse("name", flags.name,
           "a name of lower-case letters, digits and hyphens, a letter first and no hyphen last");
  }
  if (!flags.name_space.empty() && !render::is_dns_label(flags.name_space)) {
    refuse("namespace", flags.name_space, "a name of lower-case letters, digits and hyphens");
  }
  check_characters("image", flags.image, "._:/@-",
                   "the name of an image: letters, digits and ._:/@-");
  check_characters("domain", flags.domain, ".-", "a domain: letters, digits, dots and hyphens");
  const std::string program = checked_program(flags);
  for (const std::string& flag : task_flags) {
    // Line ends would break the comments and scripts of some targets.
    check_text(flag.substr(2, flag.find('=') - 2), flag);
  }
  render::Deployment deployment{.name = flags.name,
                                .image = flags.image,
                                .program = program,
                                .groups = make_groups(flags),
                                .volumes = {},
                                .name_space = flags.name_space,
                                .domain = flags.domain,
                                .user = flags.user,
                                .network = flags.network,
                                .metrics_port = flags.metrics_port,
                                .pod_monitor = flags.pod_monitor,
                                .secret = flags.secret,
                                .flags = with_metrics(flags, std::move(task_flags)),
                                .command = flags.command,
                                .command_flags = flags.program_arguments,
                                .job_url = flags.job_url,
                                .disttf_image = flags.disttf_image};
  // Before TensorBoard, whose directory must be in one of them.
  for (const std::string& text : flags.volumes) {
    deployment.volumes.push_back(read_volume(text));
    if (render::is_brought(deployment) &&
        deployment.volumes.back().path == render::kBroughtFolder) {
      refuse("volumes", text, "free: disttf is brought to " + std::string(render::kBroughtFolder));
    }
  }
  if (flags.tensorboard) {
    deployment.tensorboard = make_tensorboard(flags, deployment, directories.log_dir);
  }
  deployment.scheduling = make_scheduling(flags);
  deployment.serving = make_serving(flags, directories.train_dir);
  return deployment;
}

}  // namespace disttf
