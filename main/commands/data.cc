#include "main/flags/data.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/commands/data_text.h"
#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "run/process/stop_signal.h"

namespace disttf {
namespace {

constexpr const char* kInspectGroup = "Data";

struct Inspection {
  roles::DataOptions data;
  bool as_json = false;
};

int inspect(const Inspection& inspection) {
  const roles::StopSignal stop;
  const data::OpenedOwnData opened = roles::open_own_dataset(inspection.data, stop);
  return Print(inspection.as_json ? data_json(opened) : data_text(opened)).run();
}

class DataCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kInspectGroup);
    app.add_option("ACTION")->description("inspect")->check(one_of({"inspect"}));
    app.add_option("PATH")->description(
        "a table (.csv, .libsvm), arrays (.npz), or a folder with train.csv and test.csv, with "
        "folders of images by class, or with IDX files");
    add_own_data_flags(app, data_.own, kInspectGroup, /*has_path=*/false);
    add.text("--data_dir", data_.data_dir, "DIR", "directory for the converted data");
    add.toggle("--json", as_json_, "print JSON");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    return run_with(Inspection{.data = data_.options(line.environment), .as_json = as_json_},
                    inspect);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    const auto fail = [](const std::string& sentence) {
      throw std::invalid_argument(sentence + " (see disttf data --help)");
    };
    if (arguments.empty()) {
      fail("data: the action is missing; inspect");
    }
    const std::string name = take_first(arguments);
    if (name != "inspect") {
      fail("data: " + net::quoted(name) + " is not inspect");
    }
    if (!begins_with_word(arguments)) {
      fail("data inspect: the path is missing; a file or a folder");
    }
    data_.own.path = take_first(arguments);
  }

  DataFlags data_;
  bool as_json_ = false;
};

}  // namespace

CommandRow data_command() {
  return {
      .name = "data",
      .description = "Inspect your own data",
      .words = "inspect PATH",
      .about =
          "Converts a table, arrays or a folder of images as training does, and describes it "
          "and what looks wrong.",
      .examples = {{"disttf data inspect iris.csv", "Columns, classes, the first rows."}},
      .files = {kInputDataFile},
      .see_also = {"launch", "download"},
      .make = make_command<DataCommand>,
  };
}

}  // namespace disttf
