// KServe's InferenceService, serving.kserve.io/v1beta1, with disttf as a custom predictor.
//
// Another target's file trains; this one serves the result, and uses only the serving part of a
// cluster file. KServe mounts or fetches STORAGE_URI into /mnt/models. A volume claim is mounted,
// so new checkpoints appear there; anything else is a copy made when a pod starts.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "net/wire/text.h"

namespace disttf::render {
namespace {

constexpr const char* kModelFolder = "/mnt/models";  // KServe's

// Checks a URI that becomes the value of a variable: Kubernetes and KServe must expand nothing in
// it.
std::string checked_uri(std::string_view field, std::string_view value, const std::string& uri) {
  const bool is_plain = std::ranges::all_of(uri, [](char c) {
    return net::is_letter(c) || net::is_digit(c) ||
           std::string_view("._~:/?=&@%+-").find(c) != std::string_view::npos;
  });
  if (!is_plain || uri.find("://") == std::string::npos || uri.starts_with("://")) {
    refuse(field, value, "a URI of letters, digits and ._~:/?=&@%+-, as pvc://CLAIM/FOLDER");
  }
  return uri;
}

// "pvc://runs/mnist" for the train_dir /runs/mnist in the volume runs:/runs.
std::string storage_uri(const Deployment& deployment) {
  const Serving& serving = deployment.serving;
  if (!serving.storage_uri.empty()) {
    return checked_uri("storage_uri", serving.storage_uri, serving.storage_uri);
  }
  const Volume* const found = deployment.volume_with(serving.directory);
  if (found == nullptr || found->is_host_path()) {
    throw std::invalid_argument(
        "--storage_uri: missing; kserve wants it, or --train_dir in a directory of --volumes whose "
        "SOURCE is the name of a claim");
  }
  return checked_uri("train_dir", serving.directory,
                     // The claim replaces the volume's path: what follows it is the folder in the
                     // claim.
                     "pvc://" + found->source + serving.directory.substr(found->path.size()));
}

// A pod's spec without the files at STORAGE_URI, which KServe adds.
Json predictor_spec(const Deployment& deployment) {
  Deployment part = deployment;
  part.volumes.clear();
  part.metrics_port.reset();
  part.secret.clear();
  const Serving& serving = deployment.serving;
  // A COMMAND is refused for kserve, so the group's job does not matter.
  const TaskGroup group{.count = 1,
                        .port = serving.port,
                        .resources = serving.resources,
                        .placement = serving.placement};
  // The port's name is the protocol, which Knative requires.
  Json spec = pod_spec(part, group,
                       {.container = "kserve-container",
                        .port_name = "http1",
                        .app = {},
                        .arguments = serving_arguments(part, kModelFolder)});
  Json& container = spec["containers"][0];
  Json storage;
  storage["name"] = "STORAGE_URI";
  storage["value"] = storage_uri(deployment);
  container["env"].push_back(std::move(storage));
  add_probes(container, serving.port);
  return spec;
}

}  // namespace

std::string render_kserve(const Deployment& deployment) {
  if (!deployment.command.empty()) {
    throw std::invalid_argument("--program: not allowed for kserve, which trains nothing");
  }
  const std::size_t replicas = std::max<std::size_t>(1, deployment.serving.replicas);
  // KServe names the service NAME-predictor; pods append a hash and a suffix.
  check_length(deployment, deployment.name + "-predictor", kMostHostName, "a Service may have");
  Json json;
  json["apiVersion"] = "serving.kserve.io/v1beta1";
  json["kind"] = "InferenceService";
  json["metadata"] = object_metadata(deployment, deployment.name);
  if (deployment.metrics_port) {
    json["metadata"]["annotations"] = scrape_annotations(deployment.serving.port);  // its pods' too
  }
  Json& predictor = json["spec"]["predictor"];
  predictor["#minReplicas"] = "So many at all times; a larger maxReplicas lets KServe add some.";
  predictor["minReplicas"] = replicas;
  predictor["maxReplicas"] = replicas;
  predictor.update(predictor_spec(deployment));
  return comment_lines(
             "kubectl apply -f FILE\n"
             "kubectl get inferenceservice " +
             deployment.name + "    its URL; there /v1/models/" + deployment.name +
             ":predict answers\n"
             "kubectl delete -f FILE") +
         "\n" + to_yaml_text(json);
}

}  // namespace disttf::render
