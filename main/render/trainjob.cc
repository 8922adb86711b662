// Kubeflow Trainer's TrainJob, trainer.kubeflow.org/v1alpha1, Trainer 2.
//
// A TrainJob names a runtime, which is a JobSet's template; the resulting JobSet has the TrainJob's
// name. The runtime of this file serves this run only: its arguments contain the lists of tasks, so
// a TrainJob cannot change the number of nodes.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

constexpr const char* kTrainer = "trainer.kubeflow.org/v1alpha1";

}  // namespace

std::string render_trainjob(const Deployment& deployment) {
  check_program_image(deployment);
  const Deployment escaped = without_expansion(deployment);
  Json runtime;
  runtime["apiVersion"] = kTrainer;
  runtime["kind"] = "TrainingRuntime";
  runtime["metadata"] = object_metadata(escaped, escaped.name);
  runtime["spec"]["template"]["spec"]["replicatedJobs"] = replicated_jobs(escaped);
  Json job;
  job["apiVersion"] = kTrainer;
  job["kind"] = "TrainJob";
  job["metadata"] = object_metadata(escaped, escaped.name);
  Json& spec = job["spec"];
  // On the TrainJob: the runtime is a template, of which nothing waits in a queue.
  add_to_queue(escaped, job["metadata"], spec);
  spec["runtimeRef"]["kind"] = "TrainingRuntime";
  spec["runtimeRef"]["name"] = escaped.name;
  return set_file(escaped, to_yaml_text(runtime) + "---\n" + to_yaml_text(job));
}

}  // namespace disttf::render
