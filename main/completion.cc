#include "main/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/help_text.h"
#include "main/parse_flags.h"
#include "math/model_spec.h"
#include "run/setting.h"

namespace disttf {
namespace {

// Collects the candidates that begin with the text being typed.
class Offer {
 public:
  explicit Offer(std::string_view begin) : begin_(begin) {}

  void add(std::string_view word, std::string_view about = {}) {
    if (word.starts_with(begin_)) {
      text_.append(word).append("\t").append(about).append("\n");
    }
  }
  void add_paths(bool directories_alone) {
    text_ += directories_alone ? ":directory\n" : ":path\n";
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string_view begin_;
  std::string text_;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Offers the words in the braces of "NAME:{text,json}".
void add_listed(std::string_view type, Offer& offer) {
  // Without braces both positions are npos, and the loop does not run.
  const std::size_t end = type.find('}');
  for (std::size_t at = type.find('{'); at < end;) {
    const std::size_t next = std::min(type.find(',', at + 1), end);
    offer.add(type.substr(at + 1, next - at - 1));
    at = next;
  }
}

// Offers values of a setting that its type does not list, because they depend on the machine or
// because other values are allowed as well.
void add_of_setting(const std::string& name, Offer& offer) {
  for (const roles::Setting& setting : roles::settings()) {
    if (setting.name != name) {
      continue;
    }
    // Choices that do not depend on the machine are in the flag's type, which add_listed() has
    // offered.
    const auto* const choice = std::get_if<roles::Choice>(&setting.value);
    if (choice != nullptr && !choice->automatic().empty()) {
      offer.add(choice->automatic());
      for (const std::string_view each : choice->names()) {
        offer.add(each);
      }
    } else if (std::holds_alternative<roles::Model>(setting.value)) {
      for (const std::string_view each : math::kModelNames) {
        offer.add(each);
      }
    }
  }
}

void add_values(const CLI::Option& option, Offer& offer) {
  if (option.get_expected_max() == 0) {  // a boolean
    offer.add("true");
    offer.add("false");
    return;
  }
  const std::string type = option.get_type_name();
  add_listed(type, offer);
  const bool is_word = option.get_positional();
  if (!is_word) {
    add_of_setting(option.get_lnames().front(), offer);
  }
  // A positional word is classified by its own name, a flag by the name of its value.
  const std::string kind = is_word ? option.get_name() : type.substr(0, type.find(':'));
  if (contains(kind, "DIR")) {
    offer.add_paths(/*directories_alone=*/true);
  } else if (contains(kind, "FILE") || contains(kind, "PATH") ||
             (is_word && (kind == "MODEL" || kind == "INPUT" || kind == "RUN" || kind == "NAME"))) {
    offer.add_paths(/*directories_alone=*/false);
  }
}

void add_flags(const CLI::App& app, Offer& offer) {
  for (const CLI::Option* option : app.get_options()) {
    // Hidden flags pass between processes of this program, or are accepted for compatibility only.
    if (option->get_group() != kHiddenGroup && !option->get_lnames().empty()) {
      offer.add("--" + option->get_lnames().front(), plain_text(option->get_description()));
    }
  }
}

// The words of a command line before the one that is being typed.
struct Before {
  const CLI::Option* flag = nullptr;  // the last one, if its value is still missing
  std::vector<std::string> words;     // positional words
  std::string control;                // the value of --control
};

constexpr std::string_view kControl = "--control=";

Before read_before(const CLI::App& app, std::span<const std::string> words) {
  Before before;
  for (const std::string& word : words) {
    // A lenient reading: the words may be wrong or incomplete, and completion must still offer
    // something.
    if (before.flag != nullptr) {
      if (before.flag->check_lname("control")) {
        before.control = word;
      }
      before.flag = nullptr;
    } else if (word.starts_with(kControl)) {
      before.control = word.substr(kControl.size());
    } else if (word.size() > 1 && word.starts_with("-")) {
      // --flag=VALUE is the name of no option, so no value is expected after it.
      const CLI::Option* const option = app.get_option_no_throw(word);
      before.flag = option != nullptr && option->get_expected_max() > 0 ? option : nullptr;
    } else {
      before.words.push_back(word);
    }
  }
  return before;
}

// Offers values of a positional word; the last one may repeat.
void add_words(const CLI::App& app, std::size_t place, Offer& offer) {
  const std::vector<const CLI::Option*> words =
      app.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (!words.empty()) {
    // Words beyond the last one repeat it, as in `plot RUN RUN`.
    add_values(*words[std::min(place, words.size() - 1)], offer);
  }
}

// Offers worker-1, because bash splits words at a colon. Offers worker:1 if the word has a colon.
void add_tasks(const RunningTasks& running_tasks, const Before& before, std::string_view current,
               Offer& offer) {
  if (!running_tasks) {
    return;
  }
  for (std::string name : running_tasks(before.control)) {
    if (!contains(current, ":")) {
      std::ranges::replace(name, ':', '-');
    }
    offer.add(name);
  }
}

std::string complete_of_command(const CommandRow& row, std::vector<std::string> before,
                                std::string current, const RunningTasks& running_tasks) {
  // Before the words are normalized, which would change the words of the other program.
  const CommandApp app(row);
  if (app.command().takes_program() && std::ranges::find(before, "--") != before.end()) {
    return ":path\n";  // the words of another program
  }
  // With the word being typed, whose name may also be spelled with hyphens.
  before.push_back(std::move(current));
  // Spell names as the options do.
  // No flag counts as a boolean here: joining its value would remove a word, and the word being
  // typed with it.
  before = normalize_arguments(before, [](std::string_view /*name*/) { return false; });
  current = std::move(before.back());
  before.pop_back();
  const Before read = read_before(app, before);
  // After --flag= only the value is offered, as the shells' scripts expect.
  const std::size_t equals = current.find('=');
  if (read.flag == nullptr && current.starts_with("--") && equals != std::string::npos) {
    const CLI::Option* const option = app.get_option_no_throw(current.substr(0, equals));
    Offer values(std::string_view(current).substr(equals + 1));
    if (option != nullptr) {
      add_values(*option, values);
    }
    return std::move(values).text();
  }
  Offer offer(current);
  if (read.flag != nullptr) {
    add_values(*read.flag, offer);
  } else if (current.starts_with("-")) {
    add_flags(app, offer);
  } else {
    const NextWord next = app.command().next_word(read.words);
    if (next == NextWord::kTask) {
      add_tasks(running_tasks, read, current, offer);
    } else if (next == NextWord::kListed) {
      add_words(app, read.words.size(), offer);
    }
  }
  return std::move(offer).text();
}

}  // namespace

std::string complete_words(std::span<const std::string> words, const RunningTasks& running_tasks) {
  std::vector<std::string> before(words.begin(), words.end());
  std::string current;
  if (!before.empty()) {
    current = std::move(before.back());
    before.pop_back();
  }
  const bool is_help = before.size() == 1 && before.front() == "help";
  if (is_help || (before.empty() && !current.starts_with("-"))) {
    Offer offer(current);
    if (!is_help) {
      offer.add("help", "Print a command's help");
    }
    for (const CommandRow& row : commands()) {
      offer.add(row.name, row.description);
    }
    return std::move(offer).text();
  }
  // help takes one command and no further word.
  if (before.size() > 1 && before.front() == "help") {
    return {};
  }
  // Throws for an unknown command: the shells' scripts discard the message, and nothing is offered.
  const CommandRow& row = take_command(before);
  return complete_of_command(row, std::move(before), std::move(current), running_tasks);
}

namespace {

// bash splits --flag=value at the sign, so the loop joins it. $2 is the part that is replaced.
constexpr const char* kBash = R"(# Completion of disttf's commands, flags and values in bash:
#   disttf completion bash >~/.local/share/bash-completion/completions/disttf
_disttf() {
  local each line is_value=
  local -a words=()
  for each in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $each == = && ${#words[@]} -gt 0 ]]; then
      words[-1]+== is_value=1
    elif [[ -n $is_value ]]; then
      words[-1]+=$each is_value=
    else
      words+=("$each")
    fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :directory)
        compopt -o filenames
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$2")
        ;;
      :path)
        compopt -o filenames
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2")
        ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("$1" __complete "${words[@]}" 2>/dev/null)
}
complete -F _disttf disttf
)";

constexpr const char* kZsh = R"(#compdef disttf
# Completion of disttf's commands, flags and values in zsh, in a file _disttf of a folder of $fpath:
#   disttf completion zsh >~/.zfunc/_disttf
_disttf() {
  local line current=$PREFIX
  local -a found
  integer failed=1
  [[ $PREFIX == --*=* ]] && compset -P '*='
  for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "$current" 2>/dev/null)}"; do
    case $line in
      :directory) _files -/ && failed=0 ;;
      :path) _files && failed=0 ;;
      ?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe disttf found && failed=0
  return failed
}
if [[ $funcstack[1] == _disttf ]]; then _disttf "$@"; else compdef _disttf disttf; fi
)";

constexpr const char* kFish = R"(# Completion of disttf's commands, flags and values in fish:
#   disttf completion fish >~/.config/fish/completions/disttf.fish
function __disttf_complete
  set -l before (commandline -opc)
  set -l current (commandline -ct)
  set -l program $before[1]
  set -e before[1]
  set -l flag (string match -r -- '^--[^=]+=' "$current")
  set -l value (string replace -r -- '^--[^=]+=' '' "$current")
  for line in ($program __complete $before "$current" 2>/dev/null)
    switch $line
      case ':directory'
        string replace -r -- '^' "$flag" (__fish_complete_directories "$value" '')
      case ':path'
        string replace -r -- '^' "$flag" (__fish_complete_path "$value")
      case '*'
        echo "$flag$line"
    end
  end
end
complete -c disttf -f -a '(__disttf_complete)'
)";

constexpr std::array kScripts = {CompletionScript{"bash", kBash}, CompletionScript{"zsh", kZsh},
                                 CompletionScript{"fish", kFish}};

}  // namespace

std::span<const CompletionScript> completion_scripts() { return kScripts; }

}  // namespace disttf
