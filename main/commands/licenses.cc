#include "main/licenses.h"

#include "main/commands/registry.h"

namespace disttf {
namespace {

class LicensesCommand : public Command {
 public:
  void add_options(CLI::App& /*app*/) override {}

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    return std::make_unique<Print>(licenses_text());
  }
};

}  // namespace

CommandRow licenses_command() {
  return {
      .name = "licenses",
      .description = "Print the licences of disttf and of the components linked into it",
      .about =
          "Prints the notice of disttf, its licence, and the licence texts of all components "
          "that are linked into the program, with instructions for relinking it with "
          "another C library.",
      .examples = {{"disttf licenses | less", "Read them page by page."}},
      .make = make_command<LicensesCommand>,
  };
}

}  // namespace disttf
