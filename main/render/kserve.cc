// KServe's InferenceService, serving.kserve.io/v1beta1, with disttf as a predictor of its own.
//
// The training is another file, of another target: this one serves what it leaves, and takes of a
// cluster file only what it is about. KServe mounts or fetches what STORAGE_URI names into
// /mnt/models; of a volume claim that is the volume itself, so new checkpoints appear there, of
// anything else a copy that is made when a pod starts.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/rendered.h"
#include "net/wire/text.h"

namespace disttf::render {
namespace {

constexpr const char* kModelFolder = "/mnt/models";  // KServe's

// It goes into a variable as it is: neither Kubernetes nor KServe may find anything to expand.
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

// "pvc://runs/mnist" of the train_dir /runs/mnist in the volume runs:/runs.
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
                     "pvc://" + found->source + serving.directory.substr(found->path.size()));
}

// A pod's spec, less what KServe adds: what lies at STORAGE_URI.
Json predictor_spec(const Deployment& deployment) {
  Deployment part = deployment;
  part.volumes.clear();
  part.metrics_port.reset();
  part.secret.clear();
  const Serving& serving = deployment.serving;
  // Of the group, pod_spec() looks at all but its job.
  const TaskGroup group{.count = 1,
                        .port = serving.port,
                        .resources = serving.resources,
                        .placement = serving.placement};
  // The port's name is the protocol, which Knative wants to know.
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
  const std::size_t replicas = std::max<std::size_t>(1, deployment.serving.replicas);
  // NAME-predictor is what KServe makes of it, and with a hash and a place behind it a pod's name.
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
