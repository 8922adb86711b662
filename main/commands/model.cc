// `disttf model show NAME` describes a model as a table or as JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "data/json/json_text.h"
#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "main/flags/model_input.h"
#include "main/model_file.h"
#include "math/model_spec.h"
#include "net/wire/text.h"
#include "run/run_config.h"
#include "run/setting.h"

namespace disttf {
namespace {

constexpr const char* kModelGroup = "Model";

struct Line {
  std::string name;
  std::string type;
  std::string output;
  std::uint64_t parameters = 0;
  std::uint64_t running = 0;  // how many of the parameters are running statistics
  std::uint64_t multiply_adds = 0;
};

std::vector<Line> lines_of(const math::ModelSpec& spec) {
  const std::vector<math::LayerSpec> specs = math::layers_of(spec);
  std::vector<Line> lines;
  for (const math::PlacedLayer& placed : math::make_layers(spec)) {
    Line& line = lines.emplace_back();
    line.name = placed.name;
    // make_layers() keeps the order and the number of the specs.
    line.type = specs[lines.size() - 1].type;
    line.output = math::to_string(placed.layer->output());
    line.multiply_adds = placed.layer->multiply_adds();
    for (const math::LayerVariable& variable : placed.layer->variables()) {
      std::uint64_t size = 1;
      for (const std::size_t length : variable.shape) {
        size *= length;
      }
      line.parameters += size;
      // Variables with a momentum are running statistics, which no gradient changes.
      line.running += variable.momentum ? size : 0;
    }
  }
  return lines;
}

Line total_of(const std::vector<Line>& lines) {
  Line total{.name = "total", .type = {}, .output = {}};
  for (const Line& line : lines) {
    total.parameters += line.parameters;
    total.running += line.running;
    total.multiply_adds += line.multiply_adds;
  }
  return total;
}

std::string table_of(const math::ModelSpec& spec, const std::vector<Line>& lines) {
  std::string text = fmt::format(
      "{} for {} and {} classes\n\n"
      "{:<14}{:<14}{:<12}{:>12}{:>16}{:>14}\n",
      math::describe(spec), math::to_string(spec.input), spec.classes, "layer", "type", "output",
      "parameters", "multiply-adds", "bytes");
  const auto add = [&](const Line& line) {
    text += fmt::format("{:<14}{:<14}{:<12}{:>12}{:>16}{:>14}\n", line.name, line.type, line.output,
                        line.parameters, line.multiply_adds, line.parameters * sizeof(float));
  };
  std::ranges::for_each(lines, add);
  const Line total = total_of(lines);
  add(total);
  if (total.running != 0) {
    text += fmt::format("\n{} of the parameters are trained, {} are running statistics.",
                        total.parameters - total.running, total.running);
  }
  text += fmt::format(
      "\nMultiply-adds count one forward pass of one example; bytes count the parameters.\n"
      "A trainer keeps {} bytes for each example of a batch.\n",
      math::activation_floats(spec) * sizeof(float));
  return text;
}

std::string json_of(const math::ModelSpec& spec, const std::vector<Line>& lines) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Line& line : lines) {
    layers.push_back({{"name", line.name},
                      {"type", line.type},
                      {"output", line.output},
                      {"parameters", line.parameters},
                      {"trained_parameters", line.parameters - line.running},
                      {"multiply_adds", line.multiply_adds},
                      {"bytes", line.parameters * sizeof(float)}});
  }
  const Line total = total_of(lines);
  const nlohmann::ordered_json model = {
      {"model", math::describe(spec)},
      {"input", math::to_string(spec.input)},
      {"classes", spec.classes},
      {"layers", layers},
      {"parameters", total.parameters},
      {"trained_parameters", total.parameters - total.running},
      {"multiply_adds", total.multiply_adds},
      {"bytes", total.parameters * sizeof(float)},
      {"bytes_of_an_example", math::activation_floats(spec) * sizeof(float)}};
  return data::json_text(model, {.indent = 2}) + "\n";
}

class ModelCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kModelGroup);
    app.add_option("ACTION")->description("show")->check(one_of({"show"}));
    app.add_option("NAME")
        ->description(model_choices())
        ->check(one_of({math::kModelNames.begin(), math::kModelNames.end()}));
    add.text("--hidden_units", hidden_units_, "N,...",
             "mlp: units of each hidden layer, as in `128,128`");
    add.text("--input", input_, "HxWxC", "shape of an example: height, width, channels");
    add.number("--classes", classes_, "N", 2, math::kMaxClasses, "number of classes");
    add.toggle("--json", as_json_, "print JSON");
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    roles::RunConfig run;
    run.model = spec_;
    run.model.input = shape_from_text(input_);
    run.model.classes = classes_;
    const auto setting = std::ranges::find(roles::settings(), std::string_view("hidden_units"),
                                           &roles::Setting::name);
    if (!roles::set_from_text(*setting, hidden_units_, run)) {
      throw std::invalid_argument("--hidden_units: " + net::quoted(hidden_units_) +
                                  " is not a list of units, like 128,128");
    }
    const std::vector<Line> lines = lines_of(run.model);
    return std::make_unique<Print>(as_json_ ? json_of(run.model, lines)
                                            : table_of(run.model, lines));
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    const auto fail = [](const std::string& sentence) {
      throw std::invalid_argument(sentence + " (see disttf model --help)");
    };
    if (arguments.empty() || arguments.front().starts_with("-")) {
      fail("model: the action is missing; show");
    }
    if (const std::string name = take_first(arguments); name != "show") {
      fail("model: " + net::quoted(name) + " is not show");
    }
    if (!begins_with_word(arguments)) {
      fail("model show: the name is missing; " + model_choices());
    }
    const std::string name = take_first(arguments);
    if (is_model_file(name)) {
      spec_.layers = read_model_file(name);
    } else if (const auto kind = math::model_from_name(name)) {
      spec_.kind = *kind;
    } else {
      fail("model show: " + net::quoted(name) + " is not " + model_choices());
    }
  }

  math::ModelSpec spec_;
  std::string hidden_units_ = "100";
  std::string input_ = "28x28x1";
  std::size_t classes_ = 10;
  bool as_json_ = false;
};

}  // namespace

CommandRow model_command() {
  return {
      .name = "model",
      .description = "Show the layers of a model",
      .words = "show NAME",
      .about = "Prints layers, output shapes, parameters, and multiply-adds of an example.",
      .examples = {{"disttf model show cnn", "The built-in convolutions."}},
      .files = {kRecipeFile},
      .see_also = {"launch"},
      .make = make_command<ModelCommand>,
  };
}

}  // namespace disttf
