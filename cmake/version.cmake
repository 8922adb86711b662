# disttf_version: link it and #include "main/version.h" for disttf::kVersion.
#
# The text comes from git at build time, not at configure time, so it is never stale; the header
# is written only when the text changed, so a commit rebuilds the one file that includes it.
set(version_dir ${CMAKE_BINARY_DIR}/generated)
add_custom_target(disttf_version_header
  COMMAND ${CMAKE_COMMAND}
          -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
          -DPROJECT_VERSION=${PROJECT_VERSION}
          -DOUTPUT=${version_dir}/main/version.h
          -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${version_dir}/main/version.h
  COMMENT "Reading the version from git" VERBATIM)

add_library(disttf_version INTERFACE)
target_include_directories(disttf_version INTERFACE ${version_dir})
add_dependencies(disttf_version disttf_version_header)
