// The flags of a task's connections to the others: timeouts, credentials, transport.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "main/flags/credentials.h"
#include "run/task.h"

namespace disttf {

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
