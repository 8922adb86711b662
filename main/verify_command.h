// disttf verify -- COMMAND: checks a user's own program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "main/commands/action.h"
#include "main/environment.h"
#include "main/flags.h"
#include "roles/verify/shell/verify.h"

namespace CLI {
class App;
}

namespace disttf {

void add_verify_flags(CLI::App& app, Flags& flags);
// `words`: COMMAND. Throws std::invalid_argument if they are missing, or name no program.
[[nodiscard]] roles::VerifyOptions verify_options(const Flags& flags,
                                                  const std::vector<std::string>& words,
                                                  const Environment& environment);
[[nodiscard]] std::unique_ptr<Action> verify_program(roles::VerifyOptions options);

}  // namespace disttf
