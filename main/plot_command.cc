#include "main/plot_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "main/commands/sandbox_needs.h"
#include "main/environment.h"
#include "main/flag_values.h"
#include "net/wire/text.h"
#include "roles/monitor/core/run_chart.h"
#include "roles/monitor/shell/record_page.h"

namespace disttf {
namespace {

constexpr const char* kPlotGroup = "Plot";
constexpr const char* kShowGroup = "Show";
constexpr std::uint64_t kMostSmoothed = 10'000;
// Each run has a curve: more could not be distinguished.
constexpr std::size_t kMostRuns = 64;

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

std::vector<std::string> all_series() {
  return {roles::series_names().begin(), roles::series_names().end()};
}

std::string quoted_series() {
  std::string text;
  for (const std::string& name : all_series()) {
    text += (text.empty() ? "`" : ", `") + name + "`";
  }
  return text;
}

}  // namespace

void add_plot_flags(CLI::App& app, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  app.add_option("RUN")->description(
      "The --train_dir of a run, a file of its records, or a --metrics_file; several are drawn "
      "together");
  app.add_option("--output,-o", flags.plot_output, "SVG file [the terminal]")
      ->type_name("FILE.svg")
      ->group(kPlotGroup);
  app.add_option_function<std::vector<std::string>>(
         "--series",
         [&flags](const std::vector<std::string>& texts) {
           flags.plot_series = split_at_commas(texts);
         },
         "curves to draw: " + quoted_series() +
             ", or a number of a user's program [the losses and the test result]")
      ->type_name("NAME,...")
      ->check(comma_list_of({}))  // a program chooses the names of its numbers
      ->group(kPlotGroup);
  app.add_option("--smooth", flags.plot_smooth, "replace each value by the mean of the last N")
      ->type_name("N")
      ->transform(whole_number(1, kMostSmoothed))
      ->capture_default_str()
      ->group(kPlotGroup);
  app.add_option("--x", flags.plot_x, "x axis: `step`, or `time` since the start")
      ->type_name("NAME")
      ->check(one_of({"step", "time"}))
      ->capture_default_str()
      ->group(kPlotGroup);
  app.add_flag("--log", flags.plot_log, "logarithmic y axis")
      ->transform(boolean())
      ->group(kPlotGroup);
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kPlotGroup);
  app.footer(
      "\ndisttf plot /srv/mnist                        loss and accuracy in the terminal\n"
      "disttf plot /srv/a /srv/b -o loss.svg --log   two runs, as a picture\n"
      "disttf plot metrics.jsonl --series test_accuracy --x time");
}

void add_show_flags(CLI::App& app, Flags& flags) {
  app.add_option("RUN")->description(
      "The --train_dir of a run, a file of its records, or a --metrics_file; several only with "
      "--page");
  flags.page.add_to(app);
  add_address_flags(app, flags.run.metrics.files, "show the page", kPageGroup);
  app.add_flag("--json", flags.json, "the same as JSON")->transform(boolean())->group(kShowGroup);
  app.footer(
      "\nShows the result, the given settings, curves, the stages of each task's steps, "
      "checkpoints, the last events:\n"
      "disttf show /srv/mnist\n"
      "disttf show /srv/a /srv/b --page    in a browser, until Ctrl-C; follows runs that still "
      "write");
}

std::vector<std::string> take_runs(Command command, std::vector<std::string>& arguments) {
  const bool is_plot = command == Command::kPlot;
  // Words before the first flag; flags may follow in any order.
  // An empty word ends the runs, too: parse_flags() then reports it by its quotes.
  const auto end = std::ranges::find_if(
      arguments, [](const std::string& word) { return word.empty() || word.starts_with("-"); });
  std::vector<std::string> runs(arguments.begin(), end);
  arguments.erase(arguments.begin(), end);
  if (runs.empty()) {
    throw std::invalid_argument(
        is_plot ? "plot: the runs are missing; for example plot RUN -o loss.svg "
                  "(see disttf plot --help)"
                : "show: the run is missing; for example show RUN --page (see "
                  "disttf show --help)");
  }
  const std::size_t most = is_plot ? kMostRuns : roles::kMostPageRuns;
  if (runs.size() > most) {
    throw std::invalid_argument((is_plot ? "plot: " : "show: ") + std::to_string(runs.size()) +
                                " runs are too many; at most " + std::to_string(most));
  }
  return runs;
}

roles::PlotOptions plot_options(std::vector<std::string> runs, const Flags& flags,
                                const net::Environment& environment) {
  // Two outputs of one command would leave open what --output holds.
  if (flags.json && !flags.plot_output.empty()) {
    throw std::invalid_argument("--json: not allowed with --output " +
                                net::quoted(flags.plot_output) +
                                ", which is a picture; JSON goes to standard output");
  }
  // A name like loss.png would promise a format that the file does not have.
  if (!flags.plot_output.empty() && !flags.plot_output.ends_with(".svg")) {
    throw std::invalid_argument("--output: " + net::quoted(flags.plot_output) +
                                " does not end in .svg, the only format");
  }
  return {.runs = std::move(runs),
          .settings = {.series = flags.plot_series,
                       .smooth = flags.plot_smooth,
                       .by_time = flags.plot_x == "time",
                       .is_log = flags.plot_log},
          .output = flags.plot_output,
          .json = flags.json,
          .variables = terminal_variables(environment)};
}

roles::ShowOptions show_options(std::vector<std::string> runs, const Flags& flags,
                                const net::Environment& environment) {
  check_address_flags(flags.run.metrics.files);
  std::optional<roles::PageOptions> page = flags.page.options(flags.run.metrics.files);
  if (runs.size() > 1 && !page) {
    throw std::invalid_argument("show: " + net::quoted(runs[1]) +
                                " is a second run; only --page shows several");
  }
  const roles::AddressFiles& files = flags.run.metrics.files;
  if (!page && (!files.certificate.empty() || !files.tokens.empty())) {
    throw std::invalid_argument((files.certificate.empty() ? "--token_file" : "--tls_cert") +
                                std::string(": has no effect without --page"));
  }
  if (flags.json && page) {
    throw std::invalid_argument(
        "--json: not allowed with --page; programs can read /v1/run of the page");
  }
  return {.runs = std::move(runs),
          .page = std::move(page),
          .json = flags.json,
          .variables = terminal_variables(environment)};
}

std::unique_ptr<Action> show_runs(roles::ShowOptions options) {
  return std::make_unique<Shown>(std::move(options), roles::run_show, roles::ProcessKind::kCommand);
}

}  // namespace disttf
