#include "main/commands/action.h"

#include <cstdio>

#include "run/outcome.h"
#include "run/process/log.h"
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

}  // namespace disttf
