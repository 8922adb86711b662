// Collects the files, folders and ports that a process needs, from its options and the environment:
// the allow-list of its sandbox (run/process/sandbox.h).
//
// Creates missing folders that the process will write to: the sandbox cannot allow what does not
// exist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "net/resolvers/resolvers.h"
#include "roles/trainer/shell/trainer.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/process/sandbox.h"

namespace disttf {

class SandboxNeeds {
 public:
  using Path = std::filesystem::path;

  // Begins with what every process needs: the configuration of the machine, standard output, names.
  explicit SandboxNeeds(const net::Environment& environment);

  [[nodiscard]] roles::SandboxPolicy take() && { return std::move(policy_); }

  // Allows reading a folder, or a file that is read once; its nearest existing parent if missing.
  void read(const Path& place);
  // Allows reading a directory of models that may be replaced, by a switched link or by being
  // recreated. So the parent folders of the directory, and of the targets of links on its path, are
  // readable too, except those that hold everything.
  void read_models(const Path& place);
  // Allows reading a file that may be replaced by another, as secrets and certificates are.
  void read_beside(const Path& file);
  void change(const Path& folder);
  // Allows writing a file that is created, or replaced by another.
  void change_beside(const Path& file);
  void listen(std::uint16_t port) { policy_.listens_on->push_back(port); }

  void metrics(const roles::MetricsOptions& metrics);
  void of_address(const roles::AddressFiles& files);
  void task(const roles::Task& task);
  void trainer(const roles::TrainerOptions& options, bool is_chief);
  // A chief writes timelines beside its checkpoints; without a local --train_dir, below /tmp.
  void timelines(const roles::CheckpointOptions& checkpoint);

 private:
  void connect(std::uint16_t port);
  // The destination comes from elsewhere: a redirect, a DataNode's address, a server of tokens.
  void connect_anywhere() { policy_.connects_to.reset(); }
  void data(const roles::DataOptions& data);
  void read_folder_of(const Path& place);
  // Follows each link on an absolute path.
  void read_targets_of(const Path& place, int links_left);
  // Whether the path is of this machine, not a store's URL; a URL opens what stores need.
  [[nodiscard]] bool is_here(const Path& place);
  void use_store();
  // Google's credentials may name a token file that another process renews. Errors of the file are
  // reported by the code that uses it.
  void read_token_of_workload(const std::string& credentials);
  // Links in a folder may lead elsewhere, as in caches of data. Links that exist at the start
  // belong to the folder's owner, so their targets may be read.
  void follow_links(const Path& folder);

  const net::Environment& environment_;
  roles::SandboxPolicy policy_;
};

}  // namespace disttf
