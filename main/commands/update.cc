#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/options_file.h"

namespace disttf {
namespace {

constexpr std::uint64_t kMostWorkers = 1000;

class UpdateCommand : public ManagementCommand {
 public:
  UpdateCommand() : ManagementCommand(roles::ManageVerb::kUpdate) {}

 private:
  void add_own_options(CLI::App& app) override {
    FlagGroup add(app, kManagement);
    add.number("--workers,-w", options_.update.workers, "N", 1, kMostWorkers,
               "`update`: new number of workers, not below the old one");
    add.text("--options", file_, "FILE", "`update`: new options file");
  }

  void complete(roles::ManageOptions& options) override {
    if (!file_.empty()) {
      // The text is sent, not the path: the launch may run in another folder.
      options.update.options = read_options_text(file_);
    }
    if (!options.update.workers && !options.update.options) {
      throw std::invalid_argument("update: the change is missing; --workers N or --options FILE");
    }
  }

  std::string file_;
};

}  // namespace

CommandRow update_command() {
  return {
      .name = "update",
      .description = "Change the workers or the settings of a running launch",
      .about = "One update runs at a time; disttf status shows its progress.",
      .examples = {{"disttf update --workers 4", "Two more, of an elastic run of two."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"status", "launch"},
      .make = make_command<UpdateCommand>,
  };
}

}  // namespace disttf
