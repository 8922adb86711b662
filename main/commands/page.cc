#include <CLI/CLI.hpp>

#include "main/commands/manage.h"
#include "main/commands/registry.h"

namespace disttf {
namespace {

class PageCommand : public ManagementCommand {
 public:
  PageCommand() : ManagementCommand(roles::ManageVerb::kPage) {}

 private:
  void add_own_options(CLI::App& app) override {
    app.footer(
        "\nThe link works once; the browser that opens it can control the run. The launch needs "
        "--page.");
  }
};

}  // namespace

CommandRow page_command() {
  return {
      .name = "page",
      .description = "Print a link to the page of a running launch, for one more browser",
      .about = "Needs a launch with --page.",
      .examples = {{"disttf page", "Prints the link."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"launch", "status"},
      .make = make_command<PageCommand>,
  };
}

}  // namespace disttf
