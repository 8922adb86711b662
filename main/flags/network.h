// The flags of a task's connections to the others: timeouts, credentials, transport.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "main/environment.h"
#include "net/tls/credentials.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/run_secret.h"
#include "run/task.h"

namespace disttf {

// The credentials of a run's tasks: a secret, certificates, or an explicit choice of neither.
struct CredentialFlags {
  // A certificate belongs to one task.
  enum class Of : std::uint8_t { kOneTask, kSeveralTasks };

  std::string secret_file;
  std::string task_cert;
  std::string task_key;
  std::string task_ca;
  bool insecure = false;

  // Adds --secret_file and --insecure; of one task also --task_cert, --task_key and --task_ca.
  void add_to(CLI::App& app, Of of);

  // The credentials of `self`, from --task_cert, else --secret_file, else the variable; null: none.
  // Throws std::invalid_argument, also if there are none, `cluster` names another machine, and
  // --insecure is not given. `is_child`: the process that started this task has checked the latter.
  [[nodiscard]] std::shared_ptr<net::Credentials> of_task(const Environment& environment,
                                                          const net::Cluster& cluster,
                                                          const net::TaskId& self,
                                                          bool is_child = false) const;

  // How the tasks of a launch get their secret. Throws std::invalid_argument.
  [[nodiscard]] roles::SecretOfRun of_launch(const Environment& environment) const;

  // Throws std::invalid_argument if rendered tasks, each for a machine of its own, would have
  // neither a secret nor certificates nor --insecure. `secret`: the engine's name of one; `advice`
  // ends the message.
  void check_rendered(const std::string& secret, const char* advice) const;

 private:
  // Throws std::invalid_argument unless at most one of the three ways is given, and that in full.
  void check() const;
};

struct TimeoutFlags {
  std::uint64_t start_s = 300;
  std::uint64_t peer_s = 60;
  std::uint64_t worker_s = 60;
  std::uint64_t heartbeat_s = 10;

  void add_to(CLI::App& app);
  // Parts of them, for processes that wait for less.
  void add_peer(CLI::App& app, const char* description);
  void add_heartbeat(CLI::App& app);

  [[nodiscard]] roles::Timeouts options() const;
};

struct NetworkFlags {
  CredentialFlags credentials;
  std::string transport = "auto";
  std::uint64_t threads = 0;  // 0: as many as suit the task

  void add_to(CLI::App& app, CredentialFlags::Of of);

  [[nodiscard]] roles::Transport transport_option() const;
};

}  // namespace disttf
