// The scripts by which shells ask what may stand on a command line: see completion.h.
#pragma once

#include <span>

namespace disttf {

struct CompletionScript {
  const char* shell;
  const char* text;
};
[[nodiscard]] std::span<const CompletionScript> completion_scripts();

}  // namespace disttf
