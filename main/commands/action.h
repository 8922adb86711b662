// What a command line selects, ready to run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "net/resolvers/resolvers.h"
#include "run/process/sandbox.h"
#include "run/process/system_calls.h"

namespace disttf {

class Action {
 public:
  virtual ~Action() = default;

  // Returns the exit code of the process. Throws roles::Failure and other exceptions; each message
  // is a sentence. Called at most once, in the sandbox.
  [[nodiscard]] virtual int run() = 0;

  // Selects the filter of system calls. A command is the default: a new action gets its filter.
  [[nodiscard]] virtual roles::ProcessKind kind() const { return roles::ProcessKind::kCommand; }

  // The files, folders and ports that the process may use; nullopt: any. Tasks and network services
  // have a sandbox, since these follow from their flags. A launcher's tasks sandbox themselves, and
  // commands end soon.
  //
  // Creates missing folders that the process will write to, because the sandbox cannot allow what
  // does not exist.
  [[nodiscard]] virtual std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& /*environment*/) const {
    return std::nullopt;
  }
};

// Calls a function with options. Tests look at the options.
template <typename Options>
class RunWith : public Action {
 public:
  using Function = int (*)(const Options&);

  RunWith(Options given, Function function, roles::ProcessKind kind)
      : options(std::move(given)), function_(function), kind_(kind) {}

  [[nodiscard]] int run() override { return function_(options); }
  [[nodiscard]] roles::ProcessKind kind() const override { return kind_; }

  Options options;

 private:
  Function function_;
  roles::ProcessKind kind_;
};

// `function` may be a lambda without captures.
template <typename Options>
[[nodiscard]] std::unique_ptr<Action> run_with(
    Options options, std::type_identity_t<typename RunWith<Options>::Function> function,
    roles::ProcessKind kind = roles::ProcessKind::kCommand) {
  return std::make_unique<RunWith<Options>>(std::move(options), function, kind);
}

// Prints a text. The exit code is 0 for --help and --version, 2 without arguments.
class Print : public Action {
 public:
  explicit Print(std::string given_text, int given_exit_code = 0)
      : text(std::move(given_text)), exit_code(given_exit_code) {}

  // Does not check for write errors: finish_output() reports them.
  [[nodiscard]] int run() override;

  std::string text;
  int exit_code;
};

}  // namespace disttf
