#include "main/verify/verify.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/flags/program.h"
#include "math/denormals.h"
#include "run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kVerifyGroup = "Verify";
// The gradients of all steps are kept.
constexpr std::uint64_t kMostVerifiedSteps = 1000;

class VerifyCommand : public Command {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kVerifyGroup);
    add.toggle("--json", as_json_, "print JSON");
    add.number("--steps", steps_, "N", 1, kMostVerifiedSteps, "steps to compute and to compare");
    add.number("--batch_size", run_.batch_size, "N", 1, roles::kMaxBatchSize, "rows of a batch");
    add.number("--seed", run_.seed, "N", 0, roles::kMaxCount,
               "seed of the rows and of the program");
    timeouts_.add_to(app, kVerifyGroup);
  }

  [[nodiscard]] bool takes_program() const override { return true; }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    if (line.app.count("--log_level") == 0) {  // else the log repeats what the checks print
      line.invocation.log.level = roles::LogLevel::kWarning;
    }
    if (!line.program) {
      throw std::invalid_argument(
          "verify: COMMAND is missing; it comes last, as in disttf verify -- python3 train.py");
    }
    const auto run = [](const roles::VerifyOptions& options) {
      math::flush_denormals();  // before there is a second thread
      return roles::run_verify(options);
    };
    return run_with(options(*line.program, line.environment), run, roles::ProcessKind::kPrograms);
  }

 private:
  // `program`: the COMMAND. Throws std::invalid_argument if it names no program.
  [[nodiscard]] roles::VerifyOptions options(const std::vector<std::string>& program,
                                             const Environment& environment) const {
    // The addresses are for the program's own eyes: nothing connects to them. The program is a
    // worker beside a chief: one that saves its model on the chief alone must not replace that of a
    // run.
    const net::Cluster cluster{.ps = {{"127.0.0.1", 2222}},
                               .workers = {{"127.0.0.1", 2223}},
                               .chief = {{"127.0.0.1", 2224}},
                               .evaluators = {}};
    return {.program = roles::find_command("COMMAND", program, cluster,
                                           {.job = net::Job::kWorker, .index = 0},
                                           search_path(environment)),
            .cluster = cluster,
            .steps = steps_,
            .batch_size = run_.batch_size,
            .seed = run_.seed,
            .timeout = std::chrono::seconds(timeouts_.step_s),
            .end_timeout = std::chrono::seconds(timeouts_.end_s),
            .as_json = as_json_};
  }

  bool as_json_ = false;
  std::uint64_t steps_ = 3;
  roles::RunConfig run_;  // has the defaults of the batch's size and of the seed
  ProgramTimeouts timeouts_;
};

}  // namespace

CommandRow verify_command() {
  return {
      .name = "verify",
      .description =
          "Check your own program: its protocol, and whether its gradients are deterministic",
      .about =
          "Starts the COMMAND after -- as the program of a made-up run, without a cluster, and "
          "checks that it follows docs/program_protocol.md and that its gradients are "
          "bit-identical when it computes them again, in the same process and in another one. "
          "Prints a line for each check; exits with "
          "1 if one has failed.",
      .examples = {{"disttf verify -- python3 train.py", "Is this program fit for a run?"},
                   {"disttf verify --steps 10 --json -- ./program", "The same for a script."}},
      .reads = {Reads::kPath},
      .see_also = {"launch", "worker", "doctor"},
      .make = make_command<VerifyCommand>,
  };
}

}  // namespace disttf
