#include "main/own_data_flags.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr std::uint64_t kMostSkippedLines = 1000;

// "0.1,0.2": two shares whose sum is below 1.
CLI::Validator two_shares() {
  return {[](std::string& text) -> std::string {
            std::vector<std::string> parts = split_at_commas({text});
            if (parts.size() != 2 || !fraction_below_one()(parts[0]).empty() ||
                !fraction_below_one()(parts[1]).empty() ||
                !(std::stod(parts[0]) + std::stod(parts[1]) < 1)) {
              return net::quoted(text) +
                     " is not VALIDATION,TEST: two shares of the rows, below 1 together";
            }
            return {};
          },
          ""};
}

}  // namespace

void add_own_data_flags(CLI::App& app, OwnDataFlags& flags, const std::string& group,
                        bool has_path) {
  FlagGroup add(app, group);
  if (has_path) {
    add.text("--data", flags.path, "PATH",
             "[your own data](training.md#your-own-data): a table (`.csv`, `.libsvm`), "
             "arrays (`.npz`), a folder with `train.csv` and `test.csv`, a folder of images "
             "per class, or IDX files; or [a bucket's URL](stores.md#data) of these");
  }
  add.text("--label_column", flags.label_column, "COLUMN",
           "label column, by name or number [label, class, target or species; else the last]");
  add.choice("--label_type", flags.label_type, "NAME", {"class", "number"},
             "`class` (classification) or `number` (regression)");
  add.list("--ignore_columns", flags.ignored_columns, "COLUMN,...",
           "columns to ignore, by name or number");
  add.number("--skip_lines", flags.skipped_lines, "N", 0, kMostSkippedLines,
             "lines to skip at the start of each file");
  add.text("--hold_out", flags.hold_out, "V,T",
           "shares of rows for validation and test, if these have no files of their own")
      ->check(two_shares());
}

std::optional<data::OwnDataOptions> own_data_options(const OwnDataFlags& flags) {
  // Flags about own data without --data are errors: the run would train on the usual data set.
  if (flags.path.empty()) {
    const OwnDataFlags usual;
    const char* const given = !flags.label_column.empty()                  ? "label_column"
                              : flags.label_type != usual.label_type       ? "label_type"
                              : !flags.ignored_columns.empty()             ? "ignore_columns"
                              : flags.skipped_lines != usual.skipped_lines ? "skip_lines"
                              : flags.hold_out != usual.hold_out           ? "hold_out"
                                                                           : nullptr;
    if (given != nullptr) {
      throw std::invalid_argument(std::string("--") + given + ": allowed only with --data");
    }
    return std::nullopt;
  }
  const std::vector<std::string> shares = split_at_commas({flags.hold_out});
  return data::OwnDataOptions{
      .path = flags.path,
      .label_column = flags.label_column,
      .label_is_number = flags.label_type == "number",
      .ignored_columns = flags.ignored_columns,
      .skipped_lines = flags.skipped_lines,
      // two_shares() has accepted the text, so at() and stod() cannot throw.
      .held_out = {.validation = std::stod(shares.at(0)), .test = std::stod(shares.at(1))}};
}

}  // namespace disttf
