#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "main/commands/registry.h"
#include "main/commands/resolution_text.h"
#include "main/commands/task_command.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr const char* kResolveGroup = "Resolve";

struct ResolvedTask {
  std::string_view name;
  std::optional<net::Job> job;
};
constexpr std::array kResolvedTasks = {
    ResolvedTask{"ps", net::Job::kPs}, ResolvedTask{"worker", net::Job::kWorker},
    ResolvedTask{"chief", net::Job::kChief}, ResolvedTask{"evaluator", net::Job::kEvaluator},
    ResolvedTask{"train", std::nullopt}};

class ResolveCommand : public TaskCommand {
 public:
  ResolveCommand() : TaskCommand({.name = "resolve", .names_job = true}) {}

  void add_options(CLI::App& app) override {
    FlagGroup add(app, kResolveGroup);
    app.add_option("TASK")
        ->description("ps, worker, chief, evaluator or train, as that command sees it")
        ->check(one_of({"ps", "worker", "chief", "evaluator", "train"}));
    add.toggle("--print", has_facts_, "every fact and the variable or flag that it comes from");
    add.toggle("--json", as_json_, "print JSON");
    TaskCommand::add_options(app);
  }

  // The word names a task's command; train if there is none.
  void take_words(const CLI::App& /*app*/, std::vector<std::string>& arguments) override {
    // resolve's own two flags may stand before the task's name.
    const auto word = std::ranges::find_if(
        arguments, [](const std::string& each) { return each != "--print" && each != "--json"; });
    if (word == arguments.end() || word->starts_with("-")) {
      return;
    }
    const auto* const found =
        std::ranges::find(kResolvedTasks, std::string_view(*word), &ResolvedTask::name);
    if (found != kResolvedTasks.end()) {
      job_ = found->job;
      arguments.erase(word);
    } else if (word == arguments.begin()) {  // else perhaps the flag's value: --print true
      throw std::invalid_argument(
          "resolve: " + net::quoted(*word) +
          " is not ps, worker, chief, evaluator or train (see disttf resolve --help)");
    }
  }

 private:
  std::unique_ptr<Action> start(const ParsedLine& line) override {
    return std::make_unique<Print>(
        resolve_text(resolve(job_, line.environment), has_facts_, as_json_));
  }

  std::optional<net::Job> job_;
  bool has_facts_ = false;
  bool as_json_ = false;
};

}  // namespace

CommandRow resolve_command() {
  return {
      .name = "resolve",
      .description = "Print the detected role and cluster without starting anything",
      .words = "[TASK]",
      .about = "Takes the words of a task and shows the source of each fact about the cluster.",
      .examples = {{"disttf resolve --print",
                    "The role and the cluster that train would detect here."}},
      .reads = {Reads::kCluster},
      .see_also = {"train", "render"},
      .make = make_command<ResolveCommand>,
  };
}

}  // namespace disttf
