#include <CLI/CLI.hpp>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "storage/store/shell/store_command.h"

namespace disttf {
namespace {

class LsCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, "List");
    app.add_option("PLACE")->description(kPlaceAbout);
    add.toggle("--json", command_.as_json, "print JSON");
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    return run_with(command_, roles::run_list_command);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    command_.place = take_place("ls", "PLACE", arguments);
  }

  roles::ListCommand command_;
};

}  // namespace

CommandRow ls_command() {
  return {
      .name = "ls",
      .description = "List a directory or a bucket",
      .words = "PLACE",
      .about = "A directory of a bucket is a common prefix of names.",
      .examples = {{"disttf ls s3://bucket/runs", "The runs in the bucket."}},
      .files = {kCredentialsFile},
      .reads = {Reads::kStores},
      .see_also = {"cp", "checkpoint"},
      .make = make_command<LsCommand>,
  };
}

}  // namespace disttf
