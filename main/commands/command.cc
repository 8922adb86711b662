#include "main/commands/command.h"

#include <stdexcept>
#include <utility>

#include "main/parse_flags.h"
#include "net/wire/text.h"

namespace disttf {

void WordCommand::take_words(const CLI::App& app, std::vector<std::string>& arguments) {
  arguments = words_first(app, arguments);
  take(arguments);
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

}  // namespace disttf
