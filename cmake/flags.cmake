# disttf_flags: what every target of this project is compiled with.
add_library(disttf_flags INTERFACE)
target_include_directories(disttf_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(disttf_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wnull-dereference -Wimplicit-fallthrough
  # Contracting a*b+c into one rounding is the compiler's choice from build to build; the
  # same bits everywhere is a promise. The kernels of math/ ask for it explicitly (-mfma + Eigen).
  -ffp-contract=off
  $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)
if(DISTTF_WERROR)
  target_compile_options(disttf_flags INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(disttf_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(DISTTF_SANITIZE)
  target_compile_options(disttf_flags INTERFACE
    -fsanitize=${DISTTF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(disttf_flags INTERFACE -fsanitize=${DISTTF_SANITIZE})
  if(DISTTF_SANITIZE MATCHES "thread")
    # g++'s TSan does not understand stand-alone fences, which Asio would use.
    target_compile_definitions(disttf_flags INTERFACE ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
