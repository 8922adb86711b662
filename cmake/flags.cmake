# disttf_flags: what every target of this project is compiled with.
# disttf_link_product(target): how the file that users get is linked, and that it lies on
# top of the build folder.
add_library(disttf_flags INTERFACE)
file(RELATIVE_PATH to_sources ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
target_include_directories(disttf_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(disttf_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wnull-dereference -Wimplicit-fallthrough
  # g++ 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # Contracting a*b+c into one rounding is the compiler's choice from build to build; the
  # same bits everywhere is a promise. The kernels of math/ ask for it explicitly (-mfma + Eigen).
  -ffp-contract=off
  # No path of the machine that built it may be in the file: two checkouts give the same bytes.
  # (The last as ccache calls the compiler.)
  -ffile-prefix-map=${CMAKE_BINARY_DIR}/=
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
  -ffile-prefix-map=${to_sources}=
  # The linker needs it for -static-pie; Debian's compiler does it unasked, others do not.
  $<$<CONFIG:Release>:-fPIE>
  # g++ collects its garbage each time that it has twice as much memory as after the last time, and a
  # unit makes little garbage. Without that, up to 1.5 GB, a unit takes a tenth less time, and 1.3 GB
  # of memory instead of 1.0 at most.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1500000>
  # One section a function, so that the linker can drop what nobody calls.
  $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)
if(DISTTF_WERROR)
  target_compile_options(disttf_flags INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(disttf_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(DISTTF_UNITY)
  # Names in unnamed namespaces then must differ within a storey (cmake/units.cmake). g++ takes the
  # sources for headers that such names must not leak from.
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
    # The vptr check asks the kernel through a pipe whether memory is readable, and where a test
    # takes away all file descriptors it calls every object a wild one.
    target_compile_options(disttf_flags INTERFACE -fno-sanitize=vptr)
  endif()
  if(DISTTF_SANITIZE MATCHES "thread")
    # g++'s TSan does not understand stand-alone fences, which Asio would use.
    target_compile_definitions(disttf_flags INTERFACE ASIO_DISABLE_FENCED_BLOCK)
  endif()
else()
  # Bytes from strangers reach this program. Both need optimisation to mean anything, and
  # sanitizers check the same and more.
  target_compile_options(disttf_flags INTERFACE
    $<$<CONFIG:Release>:-fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3>)
endif()

# How COLD sources of a room are compiled: to be small, and without passes of the compiler that make
# fast code faster, which take a part of the first build. (Without -ftree-vrp and
# -ftree-dominator-opts it would be shorter still, and warn of what is set as if it were not.)
set(DISTTF_COLD_OPTIONS -Os -fno-code-hoisting -fno-gcse -fno-ipa-cp -fno-ipa-icf -fno-ipa-reference -fno-ipa-sra
  -fno-ivopts -fno-schedule-insns2 -fno-tree-pre -fno-tree-sink -fno-tree-slsr)

# disttf_room(target [HOT a.cc ..] [COLD b.cc ..] [PUBLIC libs] [PRIVATE libs]): a room of the house,
# a library. HOT: on the way of a training step. COLD: runs once, or when something is wrong, where
# small is better than fast.
function(disttf_room target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HOT;COLD;PUBLIC;PRIVATE")
  add_library(${target} STATIC ${arg_HOT})
  target_link_libraries(${target} PUBLIC disttf_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(arg_COLD)
    # A target of their own: sources with options of their own are not compiled together.
    if(DISTTF_UNITY)
      add_library(${target}_cold STATIC ${arg_COLD})  # linked with the room by cmake/units.cmake
    else()
      add_library(${target}_cold OBJECT ${arg_COLD})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cold>)
    endif()
    target_link_libraries(${target}_cold PRIVATE disttf_flags ${arg_PUBLIC} ${arg_PRIVATE})
    target_compile_options(${target}_cold PRIVATE "$<$<CONFIG:Release>:${DISTTF_COLD_OPTIONS}>")
  endif()
  set_property(GLOBAL APPEND PROPERTY DISTTF_ROOMS ${target})
endfunction()

# lld links a test in a tenth of the time. Where it is not installed, the system's linker does it.
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
  # Position independent, so that addresses differ from run to run also in a static file that
  # strangers may talk to. Packed relocations make that cost 0.13 MB and not 0.68.
  # (-L by hand: CMake's link directories add an rpath, and static-pie crashes at start with one.)
  target_link_options(${target} PRIVATE -static-pie -L${DISTTF_ARCHIVE_DIR} ${DISTTF_LEFT_OUT})
  if(DISTTF_OPENSSL_CHOICE)
    # Objects come before archives, whose own versions of these functions then stay where they are.
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:disttf_openssl>)
    target_link_options(${target} PRIVATE ${DISTTF_OPENSSL_LINK})
  endif()
  if(DISTTF_LLD)
    # Functions of the same instructions are kept once: 0.2 MB. Nothing here, nor in what it is linked
    # with, tells functions apart by their addresses, as std::any would.
    target_link_options(${target} PRIVATE -Wl,--pack-dyn-relocs=relr -Wl,--icf=all -Wl,-O2)
  else()
    target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endfunction()
