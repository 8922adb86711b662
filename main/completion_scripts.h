// The completion scripts of the shells; see completion.h.
#pragma once

#include <span>

namespace disttf {

struct CompletionScript {
  const char* shell;
  const char* text;
};
[[nodiscard]] std::span<const CompletionScript> completion_scripts();

}  // namespace disttf
