# disttf_version: link it and #include "main/version.h" for disttf::kVersion.
#
# The version is DISTTF_VERSION, or comes from git. git is queried at build time, not at configure time, so the
# version is never stale. The source is written only when the version changed, so a commit recompiles one file.
set(version_source ${CMAKE_BINARY_DIR}/generated/main/version.cc)
add_custom_target(disttf_version_source
  COMMAND ${CMAKE_COMMAND}
          -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
          -DPROJECT_VERSION=${PROJECT_VERSION}
          -DTOLD_VERSION=${DISTTF_VERSION}
          -DINPUT=${CMAKE_SOURCE_DIR}/main/version.cc.in
          -DOUTPUT=${version_source}
          -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${version_source}
  COMMENT "Writing the version" VERBATIM)

add_library(disttf_version STATIC ${version_source})
target_link_libraries(disttf_version PRIVATE disttf_flags)
add_dependencies(disttf_version disttf_version_source)
