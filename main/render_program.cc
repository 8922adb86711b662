#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/flags/flag_group.h"
#include "main/render_flags.h"

namespace disttf {
namespace {

// Throws for flags that only a COMMAND takes.
void check_without_command(const RenderFlags& flags, const std::string& path) {
  if (flags.has_program && path.empty()) {
    throw std::invalid_argument(
        "--program: needs a COMMAND after --, or the path of disttf on every machine, "
        "--program=/nfs/disttf");
  }
  if (!flags.program_arguments.empty()) {
    const std::string& word = flags.program_arguments.front();
    throw std::invalid_argument(word.substr(0, word.find('=')) +
                                ": needs --program and a COMMAND after --");
  }
  if (!flags.disttf_image.empty()) {
    render::refuse("disttf_image", flags.disttf_image,
                   "allowed without --program and a COMMAND after --; --image is disttf's own");
  }
}

}  // namespace

void add_program_flags(FlagGroup& add, RenderFlags& flags) {
  add.text("--program", flags.program, "FILE",
           "[your own program](targets/README.md#your-own-program) trains: the COMMAND after "
           "`--`; dcos: without one the job of `--options`. FILE: path of disttf in its "
           "image, or on every machine without an image "
           "[`disttf`, with tfmesos `/disttf`; a COMMAND's image is given disttf]")
      ->expected(0, 1);
  add.text("--disttf_image", flags.disttf_image, "IMAGE",
           "with a COMMAND: image of the other tasks, with disttf at `/disttf` [`disttf`]");
}

std::string checked_program(const RenderFlags& flags) {
  // `program = true` of a cluster file.
  std::string path = flags.program == "true" ? std::string() : flags.program;
  render::check_text("program", path);
  if (flags.command.empty()) {
    check_without_command(flags, path);
    return path;
  }
  if (!flags.has_program) {
    throw std::invalid_argument(
        "render: a COMMAND after -- needs --program: it is the program that trains");
  }
  // A word of scripts and of several formats.
  render::check_characters("program", path, "/._-", "a path of letters, digits and /._-");
  render::check_characters("disttf_image", flags.disttf_image, "._:/@-",
                           "the name of an image: letters, digits and ._:/@-");
  for (const std::string& word : flags.command) {
    render::check_text("program", word);
  }
  // These know models of layers only.
  if (flags.evaluator) {
    render::refuse(
        "evaluator", "true",
        "allowed with a program of your own, whose model only it knows; its chief evaluates");
  }
  if (flags.serve != 0) {
    render::refuse("serve", std::to_string(flags.serve),
                   "allowed with a program of your own, whose model only it knows; 0 is");
  }
  return path;
}

}  // namespace disttf
