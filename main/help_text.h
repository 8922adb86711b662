// The description of a flag, written once for --help and for docs/flags.md.
//
//   "`linear`: [falls](x.md) to 0; `none`: it stays [no bound]"
//
// `Quotes` and [links](x.md) are for the document; the help keeps only their words. Brackets at the
// end hold the behaviour without the flag, if it has no default value.
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "main/commands/texts.h"

namespace disttf {

// "Linear: falls to 0; none: it stays [no bound]": begins with a capital letter unless it begins
// with a quote.
[[nodiscard]] std::string plain_text(std::string_view description);

// Sets how the app's help looks: plain_text() of what its options are described by, and `examples`
// at the end. Where all flags need more than three screens, app.help() shows the usual ones and
// names the groups of the others, and app.help("", CLI::AppFormatMode::All) shows all.
void show_plain_help(CLI::App& app, std::vector<Example> examples);

// Points to the list of all flags, in brackets, for the end of a sentence: " (disttf COMMAND
// --help-all lists the flags)".
[[nodiscard]] std::string flags_hint(const CLI::App& app);

// The help, where --help, -h or --help-all is among the words of a command.
[[nodiscard]] std::optional<std::string> help_asked_for(const CLI::App& app,
                                                        std::span<const std::string> words);

}  // namespace disttf
