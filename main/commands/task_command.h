// What the commands of tasks have in common: ps, worker, chief, evaluator, train, and resolve,
// which takes their words.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "main/commands/command.h"
#include "main/flags/addresses.h"
#include "main/flags/cluster.h"
#include "main/flags/process.h"
#include "main/flags/program.h"
#include "main/flags/run.h"
#include "net/resolvers/resolvers.h"
#include "roles/evaluator/evaluator.h"
#include "roles/launch/shell/own_program.h"
#include "roles/trainer/shell/trainer.h"

namespace disttf {

class TaskCommand : public Command {
 public:
  void add_options(CLI::App& app) override;
  void add_last_options(CLI::App& app) override;
  [[nodiscard]] bool takes_program() const override { return kind_.takes_program; }
  std::unique_ptr<Action> action(const ParsedLine& line) final;

 protected:
  struct Kind {
    const char* name;                  // of the command
    std::optional<net::Job> job = {};  // that the command implies
    bool names_job = false;            // --job_name is shown in the help
    bool takes_program = true;         // --program -- COMMAND
    bool has_page = true;              // which trainer is the chief is known only later
    bool can_drive_servers = false;    // --existing_servers
  };
  explicit TaskCommand(const Kind& kind) : kind_(kind) {}

  // Makes the action, after the flags have been checked.
  [[nodiscard]] virtual std::unique_ptr<Action> start(const ParsedLine& line);

  // Finds the cluster, as a task whose command implies `job`.
  [[nodiscard]] net::Resolution resolve(std::optional<net::Job> job,
                                        const Environment& environment) const;

 private:
  [[nodiscard]] std::unique_ptr<Action> start_task(const ParsedLine& line,
                                                   net::ClusterAndTask found) const;
  [[nodiscard]] std::unique_ptr<Action> run_alone(const ParsedLine& line) const;
  [[nodiscard]] std::unique_ptr<Action> drive_servers(const ParsedLine& line) const;
  [[nodiscard]] std::unique_ptr<Action> evaluate(const ParsedLine& line,
                                                 net::ClusterAndTask found) const;

  [[nodiscard]] roles::Task task(const Environment& environment, net::ClusterAndTask found) const;
  [[nodiscard]] roles::TrainerOptions trainer_options(const ParsedLine& line,
                                                      net::ClusterAndTask found) const;
  [[nodiscard]] roles::OwnProgramOptions own_program_options(const ParsedLine& line,
                                                             const roles::Task& task) const;

  Kind kind_;
  ClusterFlags cluster_;
  bool existing_servers_ = false;
  PageFlags page_;
  ProgramFlags program_;
  InheritedFlags inherited_;
  RunFlags run_;
};

// The flags of a process that may be a child: launch passes the identity of a child by flags.
[[nodiscard]] net::ClusterFlags wanted_cluster(const ClusterFlags& cluster,
                                               const InheritedFlags& inherited,
                                               std::optional<net::Job> job);

// A task that has been found in a cluster. Throws std::invalid_argument if its credentials are
// wrong.
[[nodiscard]] roles::Task make_task(const NetworkFlags& network, const TimeoutFlags& timeouts,
                                    const InheritedFlags& inherited, const Environment& environment,
                                    net::ClusterAndTask found);

}  // namespace disttf
