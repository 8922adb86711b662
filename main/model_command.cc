#include "main/model_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "data/json/json_text.h"
#include "main/flag_values.h"
#include "main/model_file.h"
#include "net/wire/text.h"
#include "roles/run/run_config.h"
#include "roles/run/setting.h"

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

}  // namespace

math::Shape shape_from_text(const std::string& text) {
  std::array<std::size_t, 3> lengths = {1, 1, 1};
  std::size_t count = 0;
  std::string_view rest = text;
  for (bool is_good = true; is_good && count < lengths.size();) {
    const auto [stopped, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), lengths[count++]);
    rest.remove_prefix(static_cast<std::size_t>(stopped - rest.data()));
    if (error != std::errc()) {
      break;
    }
    if (rest.empty()) {
      // A single number is the length of a row of a table.
      return count == 1 ? math::Shape{.channels = lengths[0]}
                        : math::Shape{lengths[0], lengths[1], lengths[2]};
    }
    is_good = rest.front() == 'x';
    rest.remove_prefix(1);
  }
  throw std::invalid_argument("--input: " + net::quoted(text) +
                              " is not HEIGHTxWIDTHxCHANNELS, like 28x28x1");
}

void add_model_flags(CLI::App& app, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  app.add_option("ACTION")->description("show")->check(one_of({"show"}));
  app.add_option("NAME")
      ->description(model_choices())
      ->check(one_of({math::kModelNames.begin(), math::kModelNames.end()}));
  app.add_option("--hidden_units", flags.model_hidden_units,
                 "mlp: units of each hidden layer, as in `128,128`")
      ->type_name("N,...")
      ->capture_default_str()
      ->group(kModelGroup);
  app.add_option("--input", flags.model_input, "shape of an example: height, width, channels")
      ->type_name("HxWxC")
      ->capture_default_str()
      ->group(kModelGroup);
  app.add_option("--classes", flags.model_classes, "number of classes")
      ->type_name("N")
      ->transform(whole_number(2, math::kMaxClasses))
      ->capture_default_str()
      ->group(kModelGroup);
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kModelGroup);
}

math::ModelSpec take_model_words(std::vector<std::string>& arguments) {
  const auto fail = [](const std::string& sentence) {
    throw std::invalid_argument(sentence + " (see disttf model --help)");
  };
  if (arguments.empty() || arguments.front().starts_with("-")) {
    fail("model: the action is missing; show");
  }
  if (arguments.front() != "show") {
    fail("model: " + net::quoted(arguments.front()) + " is not show");
  }
  if (arguments.size() < 2 || arguments[1].empty() || arguments[1].starts_with("-")) {
    fail("model show: the name is missing; " + model_choices());
  }
  math::ModelSpec spec;
  if (is_model_file(arguments[1])) {
    spec.layers = read_model_file(arguments[1]);
  } else if (const auto kind = math::model_from_name(arguments[1])) {
    spec.kind = *kind;
  } else {
    fail("model show: " + net::quoted(arguments[1]) + " is not " + model_choices());
  }
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  return spec;
}

std::string model_text(math::ModelSpec spec, const Flags& flags) {
  roles::RunConfig run;
  run.model = std::move(spec);
  run.model.input = shape_from_text(flags.model_input);
  run.model.classes = flags.model_classes;
  const auto setting =
      std::ranges::find(roles::settings(), std::string_view("hidden_units"), &roles::Setting::name);
  if (!roles::set_from_text(*setting, flags.model_hidden_units, run)) {
    throw std::invalid_argument("--hidden_units: " + net::quoted(flags.model_hidden_units) +
                                " is not a list of units, like 128,128");
  }
  const std::vector<Line> lines = lines_of(run.model);
  return flags.json ? json_of(run.model, lines) : table_of(run.model, lines);
}

}  // namespace disttf
