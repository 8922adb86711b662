#include "main/store_command.h"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "net/wire/text.h"
#include "roles/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kCopyGroup = "Copy";
constexpr const char* kListGroup = "List";
// Each thread has a connection and up to 80 MiB of a large file.
constexpr std::uint64_t kMostCopyThreads = 64;
constexpr const char* kPlaceAbout =
    "A path, or a URL like s3://bucket/prefix or gs://bucket/prefix";

std::string take_place(const char* command, const char* name, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(std::string(command) + ": " + name + " is missing (see disttf " +
                                command + " --help)");
  }
  std::string place = std::move(arguments.front());
  arguments.erase(arguments.begin());
  roles::check_place(command, place);
  return place;
}

}  // namespace

void add_ls_flags(CLI::App& app, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  app.add_option("PLACE")->description(kPlaceAbout);
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kListGroup);
}

void add_cp_flags(CLI::App& app, Flags& flags) {
  app.add_option("FROM")->description(kPlaceAbout);
  app.add_option("TO")->description("The same; directories are copied recursively");
  app.add_option("--files_at_once", flags.copy_threads, "number of files copied at once")
      ->type_name("N")
      ->transform(whole_number(1, kMostCopyThreads))
      ->capture_default_str()
      ->group(kCopyGroup);
}

std::string take_ls_word(std::vector<std::string>& arguments) {
  return take_place("ls", "PLACE", arguments);
}

roles::CopyCommand take_cp_words(std::vector<std::string>& arguments) {
  // Two statements, in this order: each takes the first word that is left.
  std::string from = take_place("cp", "FROM", arguments);
  std::string to = take_place("cp", "TO", arguments);
  // Before anything is read from FROM, which may be large.
  roles::check_place_to_write("cp", to);
  return {.from = std::move(from), .to = std::move(to)};
}

}  // namespace disttf
