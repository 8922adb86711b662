#include "main/completion_scripts.h"

#include <array>

namespace disttf {
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
