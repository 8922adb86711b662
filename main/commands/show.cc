#include <CLI/CLI.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/commands/sandbox_needs.h"
#include "main/flags/addresses.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "run/monitor/shell/plot_command.h"

namespace disttf {
namespace {

class Shown : public RunWith<roles::ShowOptions> {
 public:
  using RunWith::RunWith;

  // With a page, which serves the network; without one it ends at once.
  [[nodiscard]] std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& environment) const override {
    if (!options.page) return std::nullopt;
    SandboxNeeds needs(environment);
    for (const std::string& each : options.runs) needs.read(each);
    needs.listen(options.page->port);
    needs.of_address(options.page->files);
    return std::move(needs).take();
  }
};

class ShowCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, "Show");
    app.add_option("RUN")->description(
        "The --train_dir of a run, a file of its records, or a --metrics_file; several only with "
        "--page");
    page_.add_to(app);
    add_address_flags(app, files_, "show the page", kPageGroup);
    add.toggle("--json", as_json_, "the same as JSON");
    app.footer(
        "\nShows the result, the given settings, curves, the stages of each task's steps, "
        "checkpoints, the last events:\n"
        "disttf show /srv/mnist\n"
        "disttf show /srv/a /srv/b --page    in a browser, until Ctrl-C; follows runs that still "
        "write");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    check_address_flags(files_);
    std::optional<roles::PageOptions> page = page_.options(files_);
    if (runs_.size() > 1 && !page) {
      throw std::invalid_argument("show: " + net::quoted(runs_[1]) +
                                  " is a second run; only --page shows several");
    }
    if (!page && (!files_.certificate.empty() || !files_.tokens.empty())) {
      throw std::invalid_argument((files_.certificate.empty() ? "--token_file" : "--tls_cert") +
                                  std::string(": has no effect without --page"));
    }
    if (as_json_ && page) {
      throw std::invalid_argument(
          "--json: not allowed with --page; programs can read /v1/run of the page");
    }
    return std::make_unique<Shown>(
        roles::ShowOptions{.runs = runs_,
                           .page = std::move(page),
                           .json = as_json_,
                           .variables = terminal_variables(line.environment)},
        roles::run_show, roles::ProcessKind::kCommand);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    runs_ = take_runs("show",
                      "show: the run is missing; for example show RUN --page (see "
                      "disttf show --help)",
                      roles::kMostPageRuns, arguments);
  }

  std::vector<std::string> runs_;
  PageFlags page_;
  roles::AddressFiles files_;
  bool as_json_ = false;
};

}  // namespace

CommandRow show_command() {
  return {
      .name = "show",
      .description = "Show a run: result, curves, tasks, events",
      .words = "RUN...",
      .about = "Reads the records of the run, during or after it.",
      .examples = {{"disttf show run", "Its result and its course."}},
      .files = {kRecordsFile},
      .reads = {Reads::kTerminal},
      .see_also = {"plot", "status"},
      .make = make_command<ShowCommand>,
  };
}

}  // namespace disttf
