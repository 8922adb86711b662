#include "main/verify_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "math/denormals.h"
#include "roles/run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kVerifyGroup = "Verify";
// The gradients of all steps are kept.
constexpr std::uint64_t kMostVerifiedSteps = 1000;

}  // namespace

void add_verify_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kVerifyGroup);
  app.add_option("--steps", flags.verify_steps, "steps to compute and to compare")
      ->type_name("N")
      ->transform(whole_number(1, kMostVerifiedSteps))
      ->capture_default_str()
      ->group(kVerifyGroup);
  app.add_option("--batch_size", flags.run.training.settings.run.batch_size, "rows of a batch")
      ->type_name("N")
      ->transform(whole_number(1, roles::kMaxBatchSize))
      ->capture_default_str()
      ->group(kVerifyGroup);
  app.add_option("--seed", flags.run.training.settings.run.seed,
                 "seed of the rows and of the program")
      ->type_name("N")
      ->transform(whole_number(0, roles::kMaxCount))
      ->capture_default_str()
      ->group(kVerifyGroup);
  flags.program.timeouts.add_to(app, kVerifyGroup);
}

roles::VerifyOptions verify_options(const Flags& flags, const std::vector<std::string>& words,
                                    const Environment& environment) {
  if (words.empty()) {
    throw std::invalid_argument(
        "verify: COMMAND is missing; it comes last, as in disttf verify -- python3 train.py");
  }
  // The addresses are for the program's own eyes: nothing connects to them. The program is a worker
  // beside a chief: one that saves its model on the chief alone must not replace that of a run.
  const net::Cluster cluster{.ps = {{"127.0.0.1", 2222}},
                             .workers = {{"127.0.0.1", 2223}},
                             .chief = {{"127.0.0.1", 2224}},
                             .evaluators = {}};
  return {.program =
              roles::find_command("COMMAND", words, cluster, {.job = net::Job::kWorker, .index = 0},
                                  search_path(environment)),
          .cluster = cluster,
          .steps = flags.verify_steps,
          .batch_size = flags.run.training.settings.run.batch_size,
          .seed = flags.run.training.settings.run.seed,
          .timeout = std::chrono::seconds(flags.program.timeouts.step_s),
          .end_timeout = std::chrono::seconds(flags.program.timeouts.end_s),
          .as_json = flags.json};
}

std::unique_ptr<Action> verify_program(roles::VerifyOptions options) {
  const auto run = [](const roles::VerifyOptions& given) {
    math::flush_denormals();  // before there is a second thread
    return roles::run_verify(given);
  };
  return run_with(std::move(options), run, roles::ProcessKind::kPrograms);
}

}  // namespace disttf
