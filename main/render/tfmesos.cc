// TFMesos: the tfrun line, in a script.
//
// tfrun starts the command on Mesos once for each task, through a shell and Python's str.format,
// and passes each task's role in TFMESOS_* variables. So no word of the command may contain braces,
// quotes or spaces. There is no separate chief: tfrun supports only ps and workers.
#include <string>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

constexpr std::string_view kSafeForTfrun =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+";

void check_word(std::string_view field, const std::string& word) {
  if (word.empty() || word.find_first_not_of(kSafeForTfrun) != std::string::npos) {
    refuse(field, word, "a word of letters, digits and _-./=,:@%+, which tfrun hands on as it is");
  }
}

// tfrun fills in the same placeholders as disttf does.
void check_command_word(const std::string& word) {
  std::string plain = word;
  for (const char* name : {"{ps_hosts}", "{worker_hosts}", "{job_name}", "{task_index}"}) {
    plain = replaced(plain, name, "x");
  }
  if (plain.find_first_not_of(kSafeForTfrun) != std::string::npos || plain.empty()) {
    refuse("program", word,
           "a word of COMMAND with letters, digits, _-./=,:@%+ and disttf's placeholders, which "
           "tfrun hands on as it is");
  }
}

std::string resources_of(const TaskGroup& group, const char* suffix) {
  const Resources& resources = group.resources;
  std::string text;
  if (resources.cpus) {
    text += std::string(" -C") + suffix + " " + cpus_text(*resources.cpus);
  }
  if (resources.gpus != 0) {
    text += std::string(" -G") + suffix + " " + std::to_string(resources.gpus);
  }
  if (resources.memory_mib) {
    text += std::string(" -M") + suffix + " " + std::to_string(*resources.memory_mib);
  }
  return text;
}

}  // namespace

std::string render_tfmesos(const Deployment& deployment) {
  refuse_evaluator(deployment, "tfmesos");
  refuse_metrics(deployment, "tfmesos");
  refuse_serving(deployment, "tfmesos", "which starts only ps and workers");
  refuse_secret(deployment, "tfmesos",
                "which has no secrets; --secret_file names a file on all machines");
  refuse_certificates(deployment, "tfmesos");
  refuse_placement(deployment, "tfmesos");
  refuse_named_volumes(deployment, "tfmesos");
  refuse_bringing(deployment, "tfmesos", "tfrun starts the task alone");
  if (deployment.group(net::Job::kChief) != nullptr) {
    refuse("chief", "true",
           "allowed for tfmesos, which starts ps and workers; worker 0 is the chief");
  }
  // Without a chief there are workers: make_groups() requires a trainer, so neither pointer is
  // null.
  const TaskGroup* const workers = deployment.group(net::Job::kWorker);
  const TaskGroup* const ps = deployment.group(net::Job::kPs);
  std::string script = "#!/bin/sh\n";
  script += comment_lines(
      "Needs $MESOS_MASTER, and the same path to disttf in the image or on all machines.\n"
      "tfrun replaces nothing in this command: disttf reads the TFMESOS_ variables.");
  if (!deployment.image.empty()) {
    check_word("image", deployment.image);
    script += "export DOCKER_IMAGE=" + deployment.image + "\n";
  }
  script += "exec tfrun -n " + deployment.name + " -w " + std::to_string(workers->count) + " -s " +
            std::to_string(ps->count) + resources_of(*workers, "w") + resources_of(*ps, "s");
  for (const Volume& volume : deployment.volumes) {
    if (volume.read_only) {
      refuse("volumes", volume.source + ":" + volume.path + ":ro",
             "writable: tfrun has no read-only volumes; leave :ro out");
    }
    script += " \\\n  -V " + volume.source + ":" + volume.path;
  }
  const std::string program = deployment.program.empty() ? "/disttf" : deployment.program;
  check_word("program", program);
  script += " \\\n  -- " + program + " train --resolver=tfmesos";
  for (const std::string& flag : deployment.flags) {
    const std::size_t equals = flag.find('=');
    // Every flag has an equals sign: arguments_for_children() writes them so.
    check_word(flag.substr(2, equals - 2), flag);
    script += " \\\n  " + flag;
  }
  if (const auto words = program_words(deployment); !words.empty()) {
    // One word: tfrun's parser drops a second -- that stands alone, and a shell splits it later.
    std::string joined;
    for (const std::string& word : words) {
      check_command_word(word);
      joined += (joined.empty() ? "" : " ") + word;
    }
    script += " \\\n  " + shell_word(joined);
  }
  return script + "\n";
}

}  // namespace disttf::render
