// The round trip: what was rendered -> the tasks as the engine would start them -> what disttf
// makes of that.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "main/command_line.h"

namespace disttf::render {

// One process, as an engine starts it.
struct Started {
  std::string address;  // "mnist-ps-0.mnist:2222": where the engine lets others find it
  std::vector<std::string> words;
  Environment environment = {};
};

struct Size {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;
};

// What `disttf render LINE` prints, of a LINE without a secret with --insecure.
[[nodiscard]] std::string rendered(const std::string& line);
// The sentence that refuses it.
[[nodiscard]] std::string render_refusal(const std::string& line);

// Every task of such a cluster is started once, finds itself at its own address, and all of them
// have the same lists.
void expect_one_cluster(const std::vector<Started>& tasks, const Size& size);

// One of them is an evaluator, and knows the same cluster as the others, none of which knows it.
void expect_one_evaluator(const std::vector<Started>& tasks);

// What the tasks of this command line are to do, e.g. how many steps.
[[nodiscard]] roles::TrainerOptions options_of(const Started& task);

// The entries of a JSON list of texts.
[[nodiscard]] std::vector<std::string> texts(const nlohmann::json& list);

}  // namespace disttf::render
