# disttf_linked_packages: link it and #include "main/version.h". It has the versions of the Debian
# packages whose archives and headers go into the file, as dpkg reports them when CMake configures. Where
# there is no dpkg, it has none.
#
# Warns about each package of which apt's lists have a newer version: a flaw that Debian has fixed stays in
# the file until the file is built with the new package. `.ci/install --newest build` installs them.
set(linked_packages libasio-dev libc6-dev libcli11-dev libeigen3-dev libfmt-dev libhttp-parser-dev
  libjpeg62-turbo-dev libminizip-dev libpng-dev libspdlog-dev libssl-dev libtomlplusplus-dev nlohmann-json3-dev
  zlib1g-dev)
set(DISTTF_PACKAGE_ROWS "")
find_program(DPKG_QUERY dpkg-query)
if(DPKG_QUERY)
  # (A foreign architecture of a package is a second line of the same version.)
  execute_process(COMMAND ${DPKG_QUERY} -W -f "\${Package} \${Version}\n" ${linked_packages}
    OUTPUT_VARIABLE installed ERROR_QUIET)
  string(REGEX MATCHALL "[^\n]+" installed "${installed}")
  list(REMOVE_DUPLICATES installed)
  foreach(package IN LISTS installed)
    string(REPLACE " " ";" package "${package}")
    list(LENGTH package parts)
    if(parts EQUAL 2)
      list(GET package 0 name)
      list(GET package 1 version)
      string(APPEND DISTTF_PACKAGE_ROWS "    {\"${name}\", \"${version}\"},\n")
    endif()
  endforeach()
endif()

find_program(APT_CACHE apt-cache)
if(APT_CACHE)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${APT_CACHE} policy ${linked_packages}
    OUTPUT_VARIABLE policy ERROR_QUIET)
  string(REGEX MATCHALL "[^\n]+:\n  Installed: [^\n]+\n  Candidate: [^\n]+" packages "${policy}")
  foreach(package IN LISTS packages)
    string(REGEX MATCH "([^\n]+):\n  Installed: ([^\n]+)\n  Candidate: ([^\n]+)" package "${package}")
    if(NOT CMAKE_MATCH_2 STREQUAL CMAKE_MATCH_3 AND NOT CMAKE_MATCH_2 STREQUAL "(none)"
        AND NOT CMAKE_MATCH_3 STREQUAL "(none)")
      message(WARNING "${CMAKE_MATCH_1} ${CMAKE_MATCH_2} goes into the file, and apt offers ${CMAKE_MATCH_3}, which may "
        "fix a flaw: run .ci/install --newest build, then build again")
    endif()
  endforeach()
endif()

set(packages_source ${CMAKE_BINARY_DIR}/generated/main/linked_packages.cc)
configure_file(${CMAKE_SOURCE_DIR}/main/linked_packages.cc.in ${packages_source} @ONLY)
add_library(disttf_linked_packages STATIC ${packages_source})
target_link_libraries(disttf_linked_packages PRIVATE disttf_flags)
