#include "main/flags/run.h"

namespace disttf {

void RunFlags::add_to(CLI::App& app, CredentialFlags::Of of) {
  training.add_to(app);
  checkpoints.add_to(app);
  output.add_to(app, training.settings);
  data.add_to(app, DataFlags::Takes::kDownloadOnly);
  timeouts.add_to(app);
  network.add_to(app, of);
}

void RunFlags::add_last(CLI::App& app) {
  add_confine(app, confine);
  testing.add_to(app);
}

roles::RunConfig RunFlags::run_config(std::size_t ps, std::size_t trainers) const {
  return training.run_config(ps, trainers, !data.own.path.empty());
}

std::string RunFlags::summary_directory() const {
  return output.summary_directory(checkpoints.train_dir);
}

}  // namespace disttf
