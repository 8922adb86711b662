// Kelda: a blueprint, main.js.
//
// Kelda names the containers itself (a second "worker" becomes worker2), so the blueprint builds
// the lists with getHostname(). Its network blocks all traffic that is not allowed. It has no
// one-off jobs: tasks stay up after the run (--on_finish=idle).
#include <string>

#include "data/json/json_text.h"
#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// A JavaScript literal: JSON's texts and lists are valid ones.
// ASCII only: JavaScript before ES2019 takes U+2028 in a text for a line end.
std::string literal(const Json& value) { return data::json_text(value, {.only_ascii = true}); }

// Whether trainers download the data set: no volume can hold it.
bool downloads(const Deployment& deployment) {
  return std::find(deployment.flags.begin(), deployment.flags.end(), "--dataset=digits") ==
         deployment.flags.end();
}

Json programs_of(const Deployment& deployment) {
  Json programs = Json::object();
  for (const TaskGroup& group : deployment.groups) {
    if (has_program(deployment, group.job)) {
      Json& program = programs[std::string(net::job_name(group.job))];
      program["image"] = image_of(deployment, group);
      program["disttf"] = path_of_disttf(deployment);
      program["words"] = json_list(program_words(deployment));
    }
  }
  return programs;
}

constexpr const char* kTasks = R"(
const infra = kelda.baseInfrastructure();
const tasks = [];
for (const job of Object.keys(counts)) {
  for (let index = 0; index < counts[job]; index += 1) {
    const container = new kelda.Container({
      name: `${job}-${index}`, image: programs[job] ? programs[job].image : image });
    tasks.push({ job, index, container });
  }
}

// The list of a job, as its tasks are numbered.
function hosts(job) {
  return tasks.filter(task => task.job === job)
    .map(task => `${task.container.getHostname()}:${port}`).join(',');
}

const lists = [];
if (counts.ps) lists.push(`--ps_hosts=${hosts('ps')}`);
if (counts.chief) lists.push(`--chief_host=${hosts('chief')}`);
if (counts.worker) lists.push(`--worker_hosts=${hosts('worker')}`);
tasks.forEach((task) => {
  const program = programs[task.job] || { disttf: '/disttf', words: [] };
  task.container.command = [program.disttf, task.job, `--task_index=${task.index}`]
    .concat(lists, flags, program.words);
});

// Nothing gets through that is not allowed: all tasks talk to the ps, and probe each other's port.
const containers = tasks.map(task => task.container);
kelda.allowTraffic(containers, containers, port);
)";

}  // namespace

std::string render_kelda(const Deployment& deployment) {
  constexpr std::size_t kMostContainerName = 63;
  refuse_evaluator(deployment, "kelda");
  refuse_metrics(deployment, "kelda");
  refuse_serving(deployment, "kelda", "whose containers share no directory");
  refuse_gpus(deployment, "kelda");
  refuse_secret(deployment, "kelda", "whose containers mount nothing; its tasks speak in clear");
  constexpr const char* kWhy = "kelda, whose containers mount nothing";
  refuse_flag(deployment, "secret_file", kWhy);
  refuse_flag(deployment, "task_cert", kWhy);
  refuse_placement(deployment, "kelda");
  check_program_image(deployment);
  refuse_bringing(deployment, "kelda", "its containers mount nothing");
  refuse_volumes(deployment, "kelda");
  refuse_resources(deployment, "kelda");
  refuse_ps_port(deployment, "kelda");
  check_length(deployment, longest_task_name(deployment), kMostContainerName,
               "a host name may have");
  std::vector<std::string> flags = deployment.flags;
  // place() adds it for other targets; here the blueprint makes the lists, so place() is not used.
  flags.emplace_back("--on_finish=idle");
  Json counts;
  for (const TaskGroup& group : deployment.groups) {
    counts[std::string(net::job_name(group.job))] = group.count;
  }
  std::string script =
      comment_lines(deployment.name +
                        ": kelda run ./main.js, kelda show, kelda logs CONTAINER\n"
                        "The result is " +
                        deployment.result_line() + " of each worker. kelda stop ends it.",
                    "// ");
  script +=
      "const kelda = require('kelda');\n\nconst image = " + literal(disttf_image(deployment)) +
      ";\nconst port = " + std::to_string(deployment.groups.front().port) +
      ";\nconst counts = " + literal(counts) + ";\n" +
      "// What every task gets. It stays up after the run: Kelda starts again what ends.\n" +
      "const flags = " + literal(json_list(flags)) + ";\n" +
      "// The user's program of a job: its image, the path of disttf in it, and the words.\n" +
      "const programs = " + literal(programs_of(deployment)) + ";\n" + kTasks;
  if (downloads(deployment)) {
    script +=
        "// The data set is fetched.\n"
        "kelda.allowTraffic(containers, kelda.publicInternet, 443);\n";
  }
  return script + "\ncontainers.forEach(container => container.deploy(infra));\n";
}

}  // namespace disttf::render
