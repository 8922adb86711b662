#include "main/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <istream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "main/model_file.h"

namespace disttf {
namespace {

class Recipe : public CLI::ConfigTOML {
 public:
  explicit Recipe(const CLI::App& app) : app_(app) {}

  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t layers = begin_of_layers(text);
    std::istringstream head(text.substr(0, layers));
    std::vector<CLI::ConfigItem> flags_and_model = CLI::ConfigTOML::from_config(head);
    if (layers == text.size()) {
      return flags_and_model;
    }
    const auto path = app_.get_config_ptr()->as<std::string>();
    if (std::ranges::any_of(flags_and_model,
                            [](const CLI::ConfigItem& item) { return item.name == "model"; })) {
      throw std::invalid_argument("--config: " + path +
                                  " has the key model and a [[layer]]; one of them is allowed");
    }
    if (!is_model_file(path)) {
      throw std::invalid_argument("--config: " + path +
                                  " has a [[layer]], so its name must end in .toml");
    }
    CLI::ConfigItem model;
    model.name = "model";
    model.inputs = {path};
    flags_and_model.push_back(model);
    return flags_and_model;
  }

 private:
  const CLI::App& app_;
};

}  // namespace

CLI::Option* add_config_file(CLI::App& app, const std::string& names) {
  app.config_formatter(std::make_shared<Recipe>(app));
  return app.set_config(names, "", "Read flags from a TOML file; the command line wins");
}

}  // namespace disttf
