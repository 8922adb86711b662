#include <CLI/CLI.hpp>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "storage/store/shell/storage.h"
#include "storage/store/shell/store_command.h"

namespace disttf {
namespace {

// Each thread has a connection and up to 80 MiB of a large file.
constexpr std::uint64_t kMostCopyThreads = 64;

class CpCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, "Copy");
    app.add_option("FROM")->description(kPlaceAbout);
    app.add_option("TO")->description("The same; directories are copied recursively");
    add.number("--files_at_once", command_.threads, "N", 1, kMostCopyThreads,
               "number of files copied at once");
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    return run_with(command_, roles::run_copy_command);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    command_.from = take_place("cp", "FROM", arguments);
    command_.to = take_place("cp", "TO", arguments);
    // Before anything is read from FROM, which may be large.
    roles::check_place_to_write("cp", command_.to);
  }

  roles::CopyCommand command_;
};

}  // namespace

CommandRow cp_command() {
  return {
      .name = "cp",
      .description = "Copy files to a bucket, from one, or between two",
      .words = "FROM TO",
      .about = "Copies directories recursively; a file appears only when it is complete.",
      .examples = {{"disttf cp s3://bucket/run/checkpoint-00000500 copy",
                    "A checkpoint, to this machine."}},
      .files = {kCredentialsFile},
      .reads = {Reads::kStores},
      .see_also = {"ls"},
      .make = make_command<CpCommand>,
  };
}

}  // namespace disttf
