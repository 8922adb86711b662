#!/bin/bash
# Dependency rules of the source tree: which module may include which. A module may include the modules in its line
# of `allowed`, and itself; a source outside of all modules is a violation. A core module only makes decisions, so it
# must not include anything with which it could act. All modules may include text/. Takes no argument and checks the
# folders below the working directory.
set -euo pipefail

# allowed MODULE: prints the modules whose headers it may include, as a regular expression; fails if MODULE is not
# one.
allowed() {
  local run='net/wire|math|data/json|run'
  local process="$run|data|net/waiting|net/memory|net/tls|net/tcp|run/process"
  local store='storage/store/core|storage/store/shell'
  local checkpoint='storage/checkpoint/core|storage/checkpoint/shell'
  local monitor='run/monitor/core|run/monitor/shell'
  case $1 in
    text | data/json | net/wire | net/waiting) echo 'nothing' ;;
    data) echo 'data/json' ;;
    data/own | data/tensorboard) echo 'data|data/json' ;;
    math) echo 'math/layers|math/losses' ;;
    math/losses) echo 'math' ;;
    math/layers) echo 'math' ;;
    net/resolvers) echo 'net/wire' ;;
    net/memory | net/tls) echo 'net/wire|net/waiting' ;;
    net/tcp) echo 'net/wire|net/waiting|net/memory|net/tls' ;;
    net/http) echo 'net/wire|net/waiting|net/tls|net/tcp' ;;
    run) echo 'net/wire|math|data/json' ;;
    run/process) echo "$process" ;;
    run/monitor/core) echo "$run|data" ;;
    run/monitor/shell) echo "$process|storage/store/core|net/http|run/monitor/core" ;;
    run/program) echo "$process" ;;
    run/watch) echo "$process|model" ;;
    storage/store/core) echo "$run|data" ;;
    storage/store/shell) echo "$process|net/http|storage/store/core" ;;
    storage/checkpoint/core) echo "$run|data" ;;
    storage/checkpoint/shell) echo "$process|$store|storage/checkpoint/core" ;;
    storage/download) echo "$process|$store|data/own|net/http" ;;
    model) echo "$process|$store|$checkpoint" ;;
    model/predict) echo "$process|data/own|storage/download|model" ;;
    model/export) echo "$process|$store|math/layers|math/losses|data/own|storage/download|storage/checkpoint/core|model" ;;
    model/import) echo "$process|$store|math/layers|math/losses|data/own|storage/checkpoint/core|model" ;;
    roles/serve/core) echo "$run|data/own|model|model/predict" ;;
    roles/serve/shell) echo "$process|$store|net/http|run/watch|storage/checkpoint/core|model|$monitor|roles/serve/core" ;;
    roles/evaluator) echo "$process|$store|data/tensorboard|run/watch|$monitor|storage/checkpoint/core|storage/download|model|roles/trainer/core|roles/trainer/shell|roles/chief/shell" ;;
    roles/chief/core) echo "$run|storage/checkpoint/core" ;;
    roles/servers/core) echo "$run|roles/launch/core" ;;
    roles/launch/core) echo "$run|run/program" ;;
    roles/ps/core) echo "$run|run/monitor/core" ;;
    roles/*/core) echo "$run" ;;
    roles/ps/shell) echo "$process|$monitor|$checkpoint|roles/ps/core" ;;
    roles/trainer/shell) echo "$process|$monitor|$checkpoint|model|storage/download|run/program|roles/trainer/core" ;;
    roles/chief/shell) echo "$process|$store|data/tensorboard|run/program|$monitor|$checkpoint|model|roles/chief/core|roles/trainer/core|roles/trainer/shell" ;;
    roles/launch/shell) echo "$process|run/program|$monitor|net/http|roles/launch/core" ;;
    roles/servers/shell) echo "$process|$monitor|storage/download|roles/servers/core|roles/launch/core|roles/launch/shell|roles/trainer/shell|roles/chief/shell" ;;
    main/render) echo 'net/wire|data/json' ;;
    main/doctor) echo "$process|net/http" ;;
    main/verify) echo "$process|run/program|roles/launch/core|roles/launch/shell|roles/trainer/shell" ;;
    main/flags) echo 'main|(roles|model|storage|run|net|data|math)(/[a-z]+)*' ;;
    main | main/commands | main/manual) echo '.*' ;;
    *) return 1 ;;
  esac
}

# Only shells may use these: Asio, threads and their synchronization, files, random devices, the
# log, and clocks. (std::chrono's durations are values; so is a point in time that a caller passes.
# A path is a value, and data/file_system.h an interface.)
readonly acts='#[[:space:]]*include[[:space:]]*<(asio|thread|mutex|shared_mutex|condition_variable|future|atomic|fstream|iostream|sys/(mman|socket|stat|poll|epoll|uio|signalfd|timerfd|resource|file|ioctl)|unistd|fcntl|poll|spdlog)|random_device|_clock::now\(|Clock::now\(|filesystem::(exists|is_|remove|rename|create_|copy|resize|file_size|last_write_time\(|directory_it|recursive_)|"data/(file|posix_file_system|file_set|mnist)\.h"'

# Only net/ may handle shared memory; it hands out bodies and takes them back. (Comments may name it.) One file in
# run/process/ distinguishes the transports, and the task selects the one that --transport requests.
readonly ways='SharedMemory|SharedView|SharedOffer|JoinedView|HeaderMailbox|kShared?[^A-Za-z]|kFlagInPlace|net/memory/(shared_memory|header_mailbox)'
readonly knows_ways='^run/(process/tensor_memory\.(h|cc)|task\.h)$'

# In g++ 12, std::ranges::copy and copy_n of contiguous const elements are loops over the elements: they test with
# source and destination in the wrong order whether bytes can be copied. std::copy is a memmove(). (A copy of 318 KB
# took 198 us instead of 8, of floats 49 us; Zen 3.)
readonly slow='ranges::copy(_n)?\('

# violations ROOT: prints file:line:text of each line that breaks a rule.
violations() {
  local folder file
  while IFS= read -r folder; do
    folder=${folder#"$1/"}
    if ! allowed "$folder" >/dev/null; then
      find "$1/$folder" -maxdepth 1 -type f \( -name '*.h' -o -name '*.cc' -o -name '*.inc' \) |
        sed 's/$/: is in no module/'
      continue
    fi
    # Also matches "../math/x.h" and <math/x.h>.
    while IFS= read -r file; do
      grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](\.\./)*(text|net|math|data|run|storage|model|roles|main)/' "$file" |
        grep -vE "[\"<](\.\./)*($(allowed "$folder")|$folder|text)/[a-z0-9_]+\.(h|inc)[\">]" || true
      case $folder in
        */core | run | net/wire) grep -nHE "$acts" "$file" || true ;;
      esac
      grep -nHE "$slow" "$file" || true
      if [[ $folder =~ ^(run|storage|model|roles|main/doctor|main/verify)(/|$) && ! ${file#"$1/"} =~ $knows_ways ]]; then
        grep -nHiE "$ways" "$file" || true
      fi
    done < <(find "$1/$folder" -maxdepth 1 -type f \( -name '*.h' -o -name '*.cc' -o -name '*.inc' \))
  done < <(find "$1"/{text,net,math,data,run,storage,model,roles,main} -type d 2>/dev/null)
}

# A broken check would report no violations, so this test must first find these.
self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree"/{run/process,net/wire,net/memory,math,data,run,roles/ps/core,roles/ps/shell,storage/checkpoint/core,main/render}
  echo '#include "math/model.h"' >"$tree/net/wire/a.cc"
  echo '#  include <net/wire/frame.h>' >"$tree/math/b.h"
  echo '#include "data/idx.h"' >"$tree/math/c.inc"
  echo '#include "data/idx.h"' >"$tree/run/n.cc"
  echo ' #include "../run/x.h"' >"$tree/data/c.cc"
  echo '#include "main/options.h"' >"$tree/run/d.cc"
  echo '#include "run/log.h"' >"$tree/main/render/e.cc"
  echo '#include "net/tcp/channel.h"' >"$tree/roles/ps/core/f.cc"
  echo '#include <thread>' >"$tree/roles/ps/core/g.cc"
  echo 'auto now = std::chrono::steady_clock::now();' >"$tree/roles/ps/core/h.cc"
  echo 'if (std::filesystem::exists(path)) return;' >"$tree/roles/ps/core/i.cc"
  echo '#include "data/posix_file_system.h"' >"$tree/storage/checkpoint/core/j.cc"
  echo '#include "net/memory/shared_memory.h"' >"$tree/roles/ps/shell/k.cc"
  echo 'SharedMemory memory;' >"$tree/roles/ps/core/l.h"
  echo '#include "net/memory/shared_memory.h"' >"$tree/run/process/tensor_memory.cc"
  echo 'std::ranges::copy(bytes, to.begin());' >"$tree/data/m.cc"
  echo '' >"$tree/roles/outside.cc"
  printf '#include "net/wire/frame.h"\n#include <thread>\n' >"$tree/roles/ps/shell/allowed.cc"
  printf '#include "net/wire/frame.h"\n#include "data/json/json_text.h"\n#include <chrono>\n' >"$tree/roles/ps/core/allowed.cc"
  echo '#include "data/file_system.h"' >"$tree/storage/checkpoint/core/allowed.cc"
  found=$(violations "$tree" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 16 ] || { echo "this check is broken: it found $found of 16 violations"; exit 1; }
}

self_test
found=$(violations .)
if [ -n "$found" ]; then
  echo "These lines break the dependency rules (listed at the head of this test):"
  echo "$found"
  exit 1
fi
