#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "run/monitor/core/run_chart.h"
#include "run/monitor/shell/plot_command.h"

namespace disttf {
namespace {

constexpr const char* kPlotGroup = "Plot";
constexpr std::uint64_t kMostSmoothed = 10'000;
// Each run has a curve: more could not be distinguished.
constexpr std::size_t kMostRuns = 64;

std::string quoted_series() {
  std::string text;
  for (const auto& name : roles::series_names()) {
    text += (text.empty() ? "`" : ", `") + std::string(name) + "`";
  }
  return text;
}

class PlotCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kPlotGroup);
    app.add_option("RUN")->description(
        "The --train_dir of a run, a file of its records, or a --metrics_file; several are drawn "
        "together");
    add.text("--output,-o", output_, "FILE.svg", "SVG file [the terminal]");
    add.list("--series", settings_.series, "NAME,...",
             "curves to draw: " + quoted_series() +
                 ", or a number of a user's program [the losses and the test result]")
        ->check(comma_list_of({}));  // a program chooses the names of its numbers
    add.number("--smooth", settings_.smooth, "N", 1, kMostSmoothed,
               "replace each value by the mean of the last N");
    add.choice("--x", x_, "NAME", {"step", "time"}, "x axis: `step`, or `time` since the start");
    add.toggle("--log", settings_.is_log, "logarithmic y axis");
    add.toggle("--json", as_json_, "print JSON");
    app.footer(
        "\ndisttf plot /srv/mnist                        loss and accuracy in the terminal\n"
        "disttf plot /srv/a /srv/b -o loss.svg --log   two runs, as a picture\n"
        "disttf plot metrics.jsonl --series test_accuracy --x time");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    // Two outputs of one command would leave open what --output holds.
    if (as_json_ && !output_.empty()) {
      throw std::invalid_argument("--json: not allowed with --output " + net::quoted(output_) +
                                  ", which is a picture; JSON goes to standard output");
    }
    // A name like loss.png would promise a format that the file does not have.
    if (!output_.empty() && !output_.ends_with(".svg")) {
      throw std::invalid_argument("--output: " + net::quoted(output_) +
                                  " does not end in .svg, the only format");
    }
    settings_.by_time = x_ == "time";
    return run_with(roles::PlotOptions{.runs = runs_,
                                       .settings = settings_,
                                       .output = output_,
                                       .json = as_json_,
                                       .variables = terminal_variables(line.environment)},
                    roles::run_plot);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    runs_ = take_runs("plot",
                      "plot: the runs are missing; for example plot RUN -o loss.svg "
                      "(see disttf plot --help)",
                      kMostRuns, arguments);
  }

  std::vector<std::string> runs_;
  roles::PlotSettings settings_;
  std::string output_;  // empty: the terminal
  std::string x_ = "step";
  bool as_json_ = false;
};

}  // namespace

CommandRow plot_command() {
  return {
      .name = "plot",
      .description = "Draw the curves of runs: in the terminal, or as SVG",
      .words = "RUN...",
      .about = "Draws unfinished runs up to their present step.",
      .examples = {{"disttf plot run1 run2 --output losses.svg", "Two runs in one picture."}},
      .files = {kRecordsFile},
      .reads = {Reads::kTerminal},
      .see_also = {"show", "top"},
      .make = make_command<PlotCommand>,
  };
}

}  // namespace disttf
