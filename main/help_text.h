// The description of a flag, as it is written once: for a person at a terminal and for
// docs/flags.md.
//
//   "`linear`: [falls](x.md) to 0; `none`: it stays [no bound]"
//
// `Quotes` and [links](x.md) are for the document; in the help only the words are left of them. The
// last words in brackets say what goes where the flag is left out and there is no default value.
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>

namespace disttf {

// "Linear: falls to 0; none: it stays [no bound]": begins with a capital letter unless it begins
// with a quote.
[[nodiscard]] std::string plain_text(std::string_view description);

// "`linear`: [falls](x.md) to 0; `none`: it stays; without it no bound"
[[nodiscard]] std::string document_text(std::string_view description);

// Has the app's help show plain_text() of what its options are described by.
void show_plain_help(CLI::App& app);

}  // namespace disttf
