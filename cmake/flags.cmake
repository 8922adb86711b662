# disttf_flags: the compile options of every target of this project.
# disttf_link_product(target): sets the link options of the executable that users get, and places it
# at the top of the build folder.
add_library(disttf_flags INTERFACE)
file(RELATIVE_PATH to_sources ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
target_include_directories(disttf_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(disttf_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wnull-dereference -Wimplicit-fallthrough
  # g++ 12 reports overlaps in std::string's operator+ that do not exist (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # Contracting a*b+c into one rounding is the compiler's choice from build to build, but results
  # must be bit-identical everywhere. The kernels of math/ request it explicitly (-mfma + Eigen).
  -ffp-contract=off
  # The executable must not contain paths of the build machine: two checkouts give identical bytes.
  # (The last option covers the path that ccache passes to the compiler.)
  -ffile-prefix-map=${CMAKE_BINARY_DIR}/=
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
  -ffile-prefix-map=${to_sources}=
  # The linker needs this for -static-pie. Debian's compiler passes it by default, others do not.
  $<$<CONFIG:Release>:-fPIE>
  # g++ collects garbage each time its memory has doubled, and a unity source makes little garbage. With a minimum
  # heap of 1.5 GB a unity source takes a tenth less time, and at most 1.3 GB of memory instead of 1.0.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1500000>
  # One section for each function, so that the linker can drop unused functions.
  $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)
if(DISTTF_WERROR)
  target_compile_options(disttf_flags INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(disttf_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(DISTTF_UNITY)
  # With unity sources, names in unnamed namespaces must differ within a layer (cmake/units.cmake).
  # g++ treats the included sources as headers, from which such names must not leak.
  target_compile_options(disttf_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(DISTTF_FUZZ AND DISTTF_FUZZ_COVERAGE)
  target_compile_options(disttf_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(disttf_flags INTERFACE -fprofile-instr-generate)
elseif(DISTTF_FUZZ)
  target_compile_options(disttf_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
if(DISTTF_SANITIZE)
  target_compile_options(disttf_flags INTERFACE
    -fsanitize=${DISTTF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(disttf_flags INTERFACE -fsanitize=${DISTTF_SANITIZE})
  if(DISTTF_SANITIZE MATCHES "undefined")
    # The vptr check uses a pipe to ask the kernel whether memory is readable. In a test that uses
    # up all file descriptors it reports every object as invalid.
    target_compile_options(disttf_flags INTERFACE -fno-sanitize=vptr)
  endif()
  if(DISTTF_SANITIZE MATCHES "thread")
    # g++'s TSan does not support the stand-alone fences that Asio would use.
    target_compile_definitions(disttf_flags INTERFACE ASIO_DISABLE_FENCED_BLOCK)
  endif()
else()
  # The executable receives bytes from unauthenticated peers. Both options need optimisation to have
  # an effect; sanitizers check the same and more.
  target_compile_options(disttf_flags INTERFACE
    $<$<CONFIG:Release>:-fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3>)
endif()

# Options for COLD sources of a module: optimize for size, without compiler passes that speed up
# code that is already fast, because these passes take part of the time of a first build. Disabling
# -ftree-vrp and -ftree-dominator-opts as well would save more time, but causes false warnings about
# uninitialized variables.
set(DISTTF_COLD_OPTIONS -Os -fno-code-hoisting -fno-gcse -fno-ipa-cp -fno-ipa-icf -fno-ipa-reference -fno-ipa-sra
  -fno-ivopts -fno-schedule-insns2 -fno-tree-pre -fno-tree-sink -fno-tree-slsr)

# disttf_module(target [HOT a.cc ..] [COLD b.cc ..] [PUBLIC libs] [PRIVATE libs]): adds a module of the source tree, a
# library. HOT: sources on the path of a training step. COLD: sources that run once or on errors, where small code is
# better than fast code.
function(disttf_module target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HOT;COLD;PUBLIC;PRIVATE")
  add_library(${target} STATIC ${arg_HOT})
  target_link_libraries(${target} PUBLIC disttf_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(arg_COLD)
    # COLD sources need a target of their own, because sources with different options cannot share a
    # unity source.
    if(DISTTF_UNITY)
      add_library(${target}_cold STATIC ${arg_COLD})  # linked with the module by cmake/units.cmake
    else()
      add_library(${target}_cold OBJECT ${arg_COLD})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cold>)
    endif()
    target_link_libraries(${target}_cold PRIVATE disttf_flags ${arg_PUBLIC} ${arg_PRIVATE})
    target_compile_options(${target}_cold PRIVATE "$<$<CONFIG:Release>:${DISTTF_COLD_OPTIONS}>")
  endif()
  set_property(GLOBAL APPEND PROPERTY DISTTF_MODULES ${target})
endfunction()

# lld links a test in a tenth of the time. Where it is not installed, the system's linker is used.
find_program(DISTTF_LLD ld.lld)
if(DISTTF_LLD)
  target_link_options(disttf_flags INTERFACE -fuse-ld=lld)
endif()

function(disttf_link_product target)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_options(${target} PRIVATE
    $<$<CONFIG:Release>:-s>  # no symbols: half the size
    -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(NOT DISTTF_STATIC)
    return()
  endif()
  # Position independent, so that addresses differ from run to run: unauthenticated peers can send
  # bytes to this executable. Packed relocations reduce the cost from 0.68 to 0.13 MB. (-L is
  # written out because CMake's link directories add an rpath, with which static-pie crashes at
  # start.)
  target_link_options(${target} PRIVATE -static-pie -L${DISTTF_ARCHIVE_DIR} ${DISTTF_LEFT_OUT})
  if(DISTTF_OPENSSL_CHOICE)
    # Objects precede archives, so the linker does not take the archives' versions of these
    # functions.
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:disttf_openssl>)
    target_link_options(${target} PRIVATE ${DISTTF_OPENSSL_LINK})
  endif()
  if(DISTTF_LLD)
    # Identical functions are merged: 0.2 MB. No code here or in the linked libraries compares functions by address,
    # as std::any would.
    target_link_options(${target} PRIVATE -Wl,--pack-dyn-relocs=relr -Wl,--icf=all -Wl,-O2)
  else()
    target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endfunction()
