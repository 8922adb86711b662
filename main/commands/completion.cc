#include "main/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

class CompletionCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    std::vector<std::string> shells;
    for (const CompletionScript& each : completion_scripts()) {
      shells.emplace_back(each.shell);
    }
    app.add_option("SHELL")->description("bash, zsh or fish")->check(one_of(std::move(shells)));
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    return std::make_unique<Print>(script_);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    if (arguments.empty() || arguments.front().starts_with("-")) {
      throw std::invalid_argument("completion: the shell is missing; bash, zsh or fish");
    }
    const std::string shell = take_first(arguments);
    for (const CompletionScript& each : completion_scripts()) {
      if (shell == each.shell) {
        script_ = each.text;
        return;
      }
    }
    throw std::invalid_argument("completion: " + net::quoted(shell) +
                                " is not bash, zsh or fish (see disttf completion --help)");
  }

  std::string script_;
};

}  // namespace

CommandRow completion_command() {
  return {
      .name = "completion",
      .description = "Print the completion script of a shell",
      .words = "bash|zsh|fish",
      .about =
          "Prints a script with which the shell completes commands, flags, values and paths. "
          "The script calls disttf itself, so it is never out of date.",
      .examples = {{"source <(disttf completion bash)",
                    "For this shell; packages install it for all."}},
      .files = {{"/usr/share/bash-completion/completions/disttf", "The package's script for bash."},
                {"/usr/share/zsh/vendor-completions/_disttf", "For zsh."},
                {"/usr/share/fish/vendor_completions.d/disttf.fish", "For fish."}},
      .make = make_command<CompletionCommand>,
  };
}

}  // namespace disttf
