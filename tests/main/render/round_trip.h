// The round trip: a rendered document -> the tasks as the engine would start them -> their
// interpretation by disttf.
#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/commands/task_actions.h"

namespace disttf::render {

// One process, as an engine starts it.
struct Started {
  std::string address;  // "mnist-ps-0.mnist:2222": its address for the other tasks
  std::vector<std::string> words;
  Environment environment = {};
};

struct Size {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;
};

// Returns the output of `disttf render LINE`, with --insecure added to a LINE without a secret.
[[nodiscard]] std::string rendered(const std::string& line);
// Returns the message that rejects the line.
[[nodiscard]] std::string render_refusal(const std::string& line);

// Expects that every task of such a cluster is started once and finds itself at its own address,
// and that all tasks have the same lists.
void expect_one_cluster(const std::vector<Started>& tasks, const Size& size);

// Expects that one of them is an evaluator with the same cluster as the others, whose lists do not
// have it.
void expect_one_evaluator(const std::vector<Started>& tasks);

// Returns the options of a task's command line, e.g. the number of steps.
[[nodiscard]] roles::TrainerOptions options_of(const Started& task);

// Returns the entries of a JSON list of texts.
[[nodiscard]] std::vector<std::string> texts(const nlohmann::json& list);

// A Marathon group as Marathon starts it.

// Each app is one task. The app /mnist/worker-0 has the host name worker-0-mnist.DOMAIN, with each
// part of the name cut at 24 characters; its image's entry point is disttf.
[[nodiscard]] std::vector<Started> marathon_tasks(const nlohmann::json& group,
                                                  const std::string& domain);

}  // namespace disttf::render
