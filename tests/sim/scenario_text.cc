// Describes scenarios as text, and shrinks one that violates an invariant.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace disttf::sim {
namespace {

std::string node_name(std::size_t node, std::size_t ps) {
  return node < ps ? "ps " + std::to_string(node) : "trainer " + std::to_string(node - ps);
}

// The node that a following fault strikes.
std::string whom_text(const Fault& fault, std::size_t ps) {
  switch (fault.whom) {
    case Fault::Whom::kSame:
      return "the same node";
    case Fault::Whom::kOtherHost:
      return "the ps after it";
    case Fault::Whom::kChief:
      return "the chief";
    case Fault::Whom::kNamed:
      break;
  }
  return node_name(fault.node, ps);
}

}  // namespace

std::string to_string(const Scenario& scenario) {
  const roles::RunConfig& config = scenario.config;
  std::string text = std::to_string(scenario.ps) + " ps, " + std::to_string(scenario.trainers) +
                     " trainers, " + std::to_string(config.train_steps) + " steps, " +
                     std::string(math::optimizer_name(config.optimizer.kind));
  text += config.optimizer.average_decay != 0 ? ", averaged" : "";
  text += config.model.layers.empty() ? "" : ", running statistics";
  if (config.elastic()) {
    text += ", elastic with " + std::to_string(config.micro_batches) + " micro-batches, at least " +
            std::to_string(config.min_workers) + " workers";
  } else if (!config.sync_replicas) {
    text += ", async";
    if (config.max_staleness) {
      text += " within " + std::to_string(*config.max_staleness);
    }
  } else if (config.replicas_to_aggregate != 0) {
    text += ", " + std::to_string(config.replicas_to_aggregate) + " gradients a step";
  }
  text += config.ps_replicas > 1 ? ", replicas" : "";
  if (config.stops_early()) {
    text += ", evaluated every " + std::to_string(config.eval_every) + " steps";
    text += config.patience != 0 ? ", patience " + std::to_string(config.patience) : "";
    text += config.target_accuracy != 0 ? ", with a target" : "";
  }
  text += scenario.clocks_differ ? ", clocks that differ" : "";
  if (const std::size_t gradients = scenario.pace.gradients_in_memory; gradients != 0) {
    text += ", shared memory";
    text += config.elastic() ? " for " + std::to_string(gradients) + " gradients" : "";
  }
  if (scenario.trainers_per_host > 1) {
    text += ", " + std::to_string(scenario.trainers_per_host) + " trainers a host";
  }
  if (scenario.launch) {
    text += ", a launch with " + std::to_string(scenario.launch->max_restarts) + " restarts";
  }
  if (scenario.has_secret) {
    text += ", a secret that changes " + std::to_string(scenario.secret_changes.size()) + " times";
  }
  if (scenario.program) {
    text += ", programs" + std::string(scenario.program->has_spare ? " with spares" : "");
  }
  text += scenario.has_disk ? ", a disk" : "";
  text += scenario.has_evaluator ? ", an evaluator" : "";
  text += scenario.evaluates_directory ? " of the directory" : "";
  const roles::CheckpointOptions& checkpoint = scenario.checkpoint;
  if (checkpoint.save_steps != 0) {
    text += ", a snapshot every " + std::to_string(checkpoint.save_steps) + " steps";
  }
  text += checkpoint.sharded ? ", sharded checkpoints" : "";
  if (checkpoint.save_secs.count() != 0) {
    text += ", a snapshot every " + std::to_string(checkpoint.save_secs.count()) + " s";
  }
  return text;
}

std::string to_string(const Fault& fault, std::size_t ps) {
  static constexpr std::array<const char*, static_cast<std::size_t>(Fault::Kind::kCount)> kNames = {
      "kill",
      "vanish",
      "terminate",
      "freeze",
      "replace",
      "break",
      "clog",
      "isolate",
      "cut a body",
      "kill at an operation of the disk",
      "failing disk",
      "rot",
      "step of the disk's clock",
      "begin anew",
      "unmount the directory",
      "no answer of the store",
      "kill the program of",
      "freeze the program of",
      "something wrong from the program of"};
  std::string text;
  const std::chrono::duration<double> at = fault.at;
  const std::chrono::duration<double> duration = fault.duration;
  if (fault.on) {
    text = "when " + std::string(name_of(*fault.on)) + " number " + std::to_string(fault.nth) +
           " is about to be delivered: " + kNames[static_cast<std::size_t>(fault.kind)] +
           (fault.to_sender ? " its sender" : " its receiver") + ", the other being " +
           node_name(fault.other, ps);
  } else if (fault.follows != 0) {
    text = std::to_string(at.count()) + " s after fault " + std::to_string(fault.follows) + ": " +
           kNames[static_cast<std::size_t>(fault.kind)] + " " + whom_text(fault, ps);
  } else {
    text = "at " + std::to_string(at.count()) +
           " s: " + kNames[static_cast<std::size_t>(fault.kind)] + " " + node_name(fault.node, ps) +
           " (other: " + node_name(fault.other, ps) + ")";
  }
  text += fault.id != 0 ? " (fault " + std::to_string(fault.id) + ")" : "";
  return text + ", for " + std::to_string(duration.count()) + " s";
}

Scenario shrunk(const Scenario& scenario) {
  Scenario best = scenario;
  const Outcome whole = simulate(best);
  std::vector<Fault> happened;
  for (std::size_t each = 0; each < best.faults.size(); ++each) {
    if (whole.happened[each]) {
      happened.push_back(best.faults[each]);
    }
  }
  const auto breaks = [](const Scenario& candidate) {
    return !simulate(candidate).violation.empty();
  };
  Scenario candidate = best;
  candidate.faults = happened;
  if (breaks(candidate)) {
    best = candidate;
  }
  for (std::size_t part = std::max<std::size_t>(best.faults.size() / 2, 1); part > 0; part /= 2) {
    for (std::size_t at = 0; at < best.faults.size();) {
      candidate = best;
      const auto begin = candidate.faults.begin() + static_cast<std::ptrdiff_t>(at);
      const auto count = std::min(part, best.faults.size() - at);
      candidate.faults.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
      if (breaks(candidate)) {
        best = candidate;
      } else {
        at += part;
      }
    }
  }
  return best;
}

}  // namespace disttf::sim
