// Slurm: a batch script whose one step has a process for each task.
//
// srun numbers the processes and passes the nodes to each; --resolver slurm derives the cluster
// from that. Slurm distributes the step over the nodes in blocks, as the resolver expects. The step
// ends when all its processes have exited; ps exit by themselves, too.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

void append_option(std::string& script, const std::string& option) {
  script += "#SBATCH --" + option + "\n";
}

// Adds the sbatch options that --placement may hold.
void append_placement(std::string& script, const TaskGroup& group) {
  constexpr std::array<std::string_view, 9> kKeys = {"account",  "constraint",  "exclude",
                                                     "nodelist", "nodes",       "partition",
                                                     "qos",      "reservation", "time"};
  for (const std::string& text : group.placement) {
    const KeyValue placement = read_placement(text);
    const bool is_known = std::find(kKeys.begin(), kKeys.end(), placement.key) != kKeys.end();
    // sbatch splits what follows #SBATCH at white space.
    if (!is_known || placement.value.find_first_of(" \t\"'\\#") != std::string::npos) {
      refuse("placement", text,
             "KEY=VALUE without spaces or quotes and a KEY of account, constraint, exclude, "
             "nodelist, nodes, partition, qos, reservation or time");
    }
    append_option(script, text);
  }
}

// The group of all tasks: a step gives each task the same. Throws if the groups differ.
const TaskGroup& common_group(const Deployment& deployment) {
  const TaskGroup& last = deployment.groups.back();
  for (const TaskGroup& group : deployment.groups) {
    if (group.resources.cpus != last.resources.cpus ||
        group.resources.memory_mib != last.resources.memory_mib ||
        group.placement != last.placement) {
      throw std::invalid_argument(
          "--ps_cpus, --ps_memory, --ps_placement: a value of their own is not allowed for slurm, "
          "which gives all tasks of a step the same; leave them out");
    }
  }
  return last;
}

void append_resources(std::string& script, const Resources& resources) {
  // Slurm gives a task one CPU by default; the memory below is divided by it.
  std::uint64_t cpus = 1;
  if (resources.cpus) {
    if (*resources.cpus != std::floor(*resources.cpus)) {
      refuse("cpus", cpus_text(*resources.cpus), "a whole number, which Slurm asks for");
    }
    cpus = static_cast<std::uint64_t>(*resources.cpus);
    append_option(script, "cpus-per-task=" + std::to_string(cpus));
  }
  if (resources.memory_mib) {
    append_option(script,
                  // Rounded up: the CPUs of a task together get at least the memory asked for.
                  "mem-per-cpu=" + std::to_string((*resources.memory_mib + cpus - 1) / cpus) + "M");
  }
}

// GPUs for each task: Slurm shows a task its own only. A step gives all tasks the same, so it keeps
// some for ps, too, which do not use them.
void append_gpus(std::string& script, const Deployment& deployment) {
  if (const std::uint64_t gpus = deployment.groups.back().resources.gpus; gpus != 0) {
    append_option(script, "gpus-per-task=" + std::to_string(gpus));
  }
}

// Checks the file of the secret before anything starts, on the machine that runs the script. -O:
// the file belongs to the user.
std::string secret_check(const Deployment& deployment) {
  constexpr const char* kAllowed =
      "the path of a file that all nodes see, from / on: letters, "
      "digits and /._-+@";
  // No character that the shell would expand: the path stands in the script without quotes.
  check_secret(deployment, "/._-+@", kAllowed);
  if (!deployment.secret.starts_with('/')) {
    refuse("secret", deployment.secret, kAllowed);
  }
  return "\n# The secret of the run. Other users must not be able to read it; (umask 077; " +
         std::string(kMakeSecret) +
         " >FILE) makes one.\n"
         "secret=" +
         deployment.secret +
         "\n"
         "mode=$(stat --dereference --format=%a -- \"$secret\" 2>/dev/null)\n"
         "if [[ ! -f $secret || ! -O $secret || $mode != [46]00 ]]; then\n"
         "  echo \"--secret: \\\"$secret\\\" is not a file of $(id -un)'s with the mode 0600 or "
         "0400 "
         "on $(hostname)\" >&2\n"
         "  exit 2\n"
         "fi\n";
}

// Jobs take windows of this many ports. Two jobs on a node collide only if their ids differ by a
// multiple of kWindows, or if one has more tasks there than a window has ports.
constexpr std::size_t kWindows = 256;
constexpr std::size_t kWindowPorts = 64;

// Refuses a first port with which some job, depending on its id, would get ports that do not exist.
void refuse_late_port(std::size_t port, std::size_t tasks) {
  constexpr std::size_t kMostPort = 65535;
  // All tasks of the step may run on one node.
  const std::size_t span = (kWindows - 1) * kWindowPorts + std::max(kWindowPorts, tasks);
  if (port + span - 1 > kMostPort) {
    refuse("port", std::to_string(port),
           "low enough: jobs take " + std::to_string(span) +
               " ports from it on, by their id, and ports end at 65535");
  }
}

}  // namespace

std::string render_slurm(const Deployment& deployment) {
  refuse_evaluator(deployment, "slurm");
  refuse_metrics(deployment, "slurm");
  refuse_serving(deployment, "slurm", "whose jobs end");
  refuse_image(deployment, "slurm");
  refuse_certificates(deployment, "slurm");
  refuse_volumes(deployment, "slurm");
  refuse_ps_port(deployment, "slurm");
  const TaskGroup& common = common_group(deployment);
  refuse_late_port(common.port, deployment.task_count());
  std::string script = "#!/bin/bash\n";
  script += comment_lines(
      "sbatch FILE\n"
      "The result is " +
      deployment.result_line() + " in " + deployment.name +
      "-JOB.out.\nscancel JOB ends it early.");
  append_option(script, "job-name=" + deployment.name);
  append_option(script, "output=%x-%j.out");
  append_option(script, "ntasks=" + std::to_string(deployment.task_count()));
  append_resources(script, common.resources);
  append_gpus(script, deployment);
  append_placement(script, common);
  if (!deployment.secret.empty()) {
    script += secret_check(deployment);
  }
  script +=
      "\n# Two jobs may share a node: each gets ports of its own.\n"
      "port_base=$((" +
      std::to_string(common.port) + " + SLURM_JOB_ID % " + std::to_string(kWindows) + " * " +
      std::to_string(kWindowPorts) +
      "))\n"
      "\n# --wait=0: a task that exits does not end the others.\n"
      "# --distribution=block: rank after rank, node after node, as the tasks count.\n"
      "exec srun --kill-on-bad-exit=1 --wait=0 --distribution=block \\\n  " +
      shell_word(deployment.program.empty() ? "disttf" : deployment.program) +
      " train --resolver=slurm --port_base=$port_base \\\n ";
  for (const TaskGroup& group : deployment.groups) {
    switch (group.job) {
      case net::Job::kPs:
        script += " --ps=" + std::to_string(group.count);
        break;
      case net::Job::kChief:
        script += " --chief";
        break;
      // refuse_evaluator() has left only workers here.
      default:
        script += " --workers=" + std::to_string(group.count);
        break;
    }
  }
  for (const std::string& flag : deployment.flags) {
    script += " \\\n  " + shell_word(flag);
  }
  if (!deployment.secret.empty()) {
    script += " \\\n  " + secret_flag("\"$secret\"");
  }
  if (const auto words = program_words(deployment); !words.empty()) {
    script += " \\\n ";
    for (const std::string& word : words) {
      script += " " + shell_word(word);
    }
  }
  return script + "\n";
}

}  // namespace disttf::render
