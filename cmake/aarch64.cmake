# Toolchain for aarch64, compiled on x86-64 with Debian's cross compiler. `make aarch64` puts the headers and
# archives of the aarch64 packages into build/aarch64/packages (.ci/aarch64), apart from this machine's own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
foreach(tool IN ITEMS AR NM OBJCOPY RANLIB STRIP)
  string(TOLOWER ${tool} name)
  set(CMAKE_${tool} /usr/bin/aarch64-linux-gnu-${name} CACHE FILEPATH "")
endforeach()
# char is signed, as on x86-64.
set(CMAKE_CXX_FLAGS_INIT "-fsigned-char -isystem ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64/packages/usr/include/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64/packages /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# ld.lld links for all processors. The cross compiler looks for it under a prefixed name or in these folders;
# for plain ld it would find this machine's linker.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B/usr/bin -fuse-ld=lld")
