#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/commands/registry.h"
#include "main/commands/store_words.h"
#include "main/flag_values.h"
#include "roles/store/shell/storage.h"
#include "roles/store/shell/store_command.h"

namespace disttf {

std::string take_place(const char* command, const char* name, std::vector<std::string>& arguments) {
  if (!begins_with_word(arguments)) {
    throw std::invalid_argument(std::string(command) + ": " + name + " is missing (see disttf " +
                                command + " --help)");
  }
  std::string place = take_first(arguments);
  roles::check_place(command, place);
  return place;
}

namespace {

class LsCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("PLACE")->description(kPlaceAbout);
    app.add_flag("--json", command_.as_json, "print JSON")->transform(boolean())->group("List");
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
