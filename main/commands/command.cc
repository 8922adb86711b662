#include "main/commands/command.h"

#include <cstdio>
#include <stdexcept>
#include <utility>

#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "storage/store/shell/storage.h"
#include "text/shown_text.h"

namespace disttf {

int Print::run() {
  const std::string shown = shown_text(text, KeptBreaks::kAll);
  // A help text that stands for an error goes to standard error: a script that reads the output
  // must not take it for a result.
  if (exit_code == roles::kDone) {
    roles::standard_output().write(shown);
  } else {
    static_cast<void>(std::fputs(shown.c_str(), stderr));
  }
  return exit_code;
}

bool begins_with_word(const std::vector<std::string>& arguments) {
  return !arguments.empty() && !arguments.front().empty() && !arguments.front().starts_with("-");
}

std::string take_first(std::vector<std::string>& arguments) {
  std::string word = std::move(arguments.front());
  arguments.erase(arguments.begin());
  return word;
}

std::string take_only_word(std::vector<std::string>& arguments, const std::string& command,
                           const std::string& what) {
  std::string word = take_first(arguments);
  if (begins_with_word(arguments)) {
    // A second word would otherwise be reported as a value without a flag.
    throw std::invalid_argument(command + ": one " + what + ", but " +
                                net::quoted(arguments.front()) + " follows it");
  }
  return word;
}

std::vector<std::string> take_runs(const std::string& command, const char* missing,
                                   std::size_t most, std::vector<std::string>& arguments) {
  // Words before the first flag; flags may follow in any order.
  // An empty word ends the runs, too: parse_flags() then reports it by its quotes.
  std::vector<std::string> runs;
  while (begins_with_word(arguments)) {
    runs.push_back(take_first(arguments));
  }
  if (runs.empty()) {
    throw std::invalid_argument(missing);
  }
  if (runs.size() > most) {
    throw std::invalid_argument(command + ": " + std::to_string(runs.size()) +
                                " runs are too many; at most " + std::to_string(most));
  }
  return runs;
}

std::string take_place(const char* command, const char* name, std::vector<std::string>& arguments) {
  if (!begins_with_word(arguments)) {
    throw std::invalid_argument(std::string(command) + ": " + name + " is missing (see disttf " +
                                command + " --help)");
  }
  std::string place = take_first(arguments);
  roles::check_place(command, place);
  return place;
}

}  // namespace disttf
