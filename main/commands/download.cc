#include "main/commands/registry.h"
#include "main/commands/task_actions.h"
#include "main/flags/data.h"

namespace disttf {
namespace {

class DownloadCommand : public Command {
 public:
  void add_options(CLI::App& app) override { data_.add_to(app, DataFlags::Takes::kNamed); }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    return run_download(data_.options(line.environment));
  }

 private:
  DataFlags data_;
};

}  // namespace

CommandRow download_command() {
  return {
      .name = "download",
      .description = "Fetch and extract a data set",
      .about = "Files are checked by their size and SHA-256 before they are used.",
      .examples = {{"disttf download --dataset fashion_mnist --data_dir /data",
                    "Fetch it before tasks need it."}},
      .files = {kInputDataFile, kAuthoritiesFile},
      .reads = {Reads::kDownloads, Reads::kStores},
      .see_also = {"data", "train"},
      .make = make_command<DownloadCommand>,
  };
}

}  // namespace disttf
