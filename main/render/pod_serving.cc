// Serving tasks beside the training on Kubernetes: a Deployment, and the Service that leads to its
// ready pods.
//
// Their label is app=NAME-serve, not app=NAME: the training's headless Service must not name these
// pods, and its StatefulSets must not adopt them.
#include "main/render/pod.h"

namespace disttf::render {
namespace {

constexpr const char* kHttpPort = "http";

std::string serving_name(const Deployment& deployment) { return deployment.name + "-serve"; }

Json serving_object(const Deployment& deployment, const char* version, const char* kind) {
  Json json;
  json["apiVersion"] = version;
  json["kind"] = kind;
  json["metadata"] = object_metadata(deployment, serving_name(deployment));
  json["metadata"]["labels"]["app"] = serving_name(deployment);
  return json;
}

Json probe(const char* path, std::uint16_t port, int seconds) {
  Json json;
  json["httpGet"]["path"] = path;
  json["httpGet"]["port"] = port;
  json["periodSeconds"] = seconds;
  return json;
}

Json serving_service_object(const Deployment& deployment) {
  Json json = serving_object(deployment, "v1", "Service");
  json["spec"]["selector"]["app"] = serving_name(deployment);
  Json port;
  port["name"] = kHttpPort;
  port["port"] = deployment.serving.port;
  json["spec"]["ports"].push_back(std::move(port));
  return json;
}

Json serving_deployment(const Deployment& deployment) {
  const Serving& serving = deployment.serving;
  Deployment part = serving_part(deployment);
  if (deployment.metrics_port) {
    part.metrics_port = serving.port;  // metrics are served at the port of requests
  }
  Json labels;
  labels["app"] = serving_name(deployment);
  Json json = serving_object(deployment, "apps/v1", "Deployment");
  Json& spec = json["spec"];
  spec["replicas"] = serving.replicas;
  spec["selector"]["matchLabels"] = labels;
  spec["template"]["metadata"] = pod_metadata(part, std::move(labels));
  part.metrics_port.reset();  // the port below is the same, and has one name
  std::vector<std::string> arguments;
  for (const std::string& each : serving_arguments(part, serving.directory)) {
    arguments.push_back(without_expansion(each));
  }
  // serving_part() has no COMMAND, so the group's job does not matter.
  const TaskGroup group{.count = serving.replicas,
                        .port = serving.port,
                        .resources = serving.resources,
                        .placement = serving.placement};
  Json& pod = spec["template"]["spec"];
  pod = pod_spec(part, group,
                 {.container = "disttf",
                  .port_name = kHttpPort,
                  .app = serving_name(deployment),
                  .arguments = std::move(arguments)});
  add_probes(pod["containers"][0], serving.port);
  return json;
}

}  // namespace

void add_probes(Json& container, std::uint16_t port) {
  container["readinessProbe"] = probe(kReadyPath, port, kReadySeconds);
  container["livenessProbe"] = probe(kLivePath, port, kLiveSeconds);
}

std::string serving_text(const Deployment& deployment) {
  if (deployment.serving.replicas == 0) {
    return {};
  }
  return "---\n" + to_yaml_text(serving_service_object(deployment)) + "---\n" +
         to_yaml_text(serving_deployment(deployment)) +
         pod_monitor_text(deployment, serving_name(deployment), kHttpPort);
}

std::string serving_hint(const Deployment& deployment) {
  if (deployment.serving.replicas == 0) {
    return {};
  }
  const std::string port = std::to_string(deployment.serving.port);
  return "kubectl port-forward service/" + serving_name(deployment) + " " + port +
         "    http://localhost:" + port + " asks the model\n";
}

}  // namespace disttf::render
