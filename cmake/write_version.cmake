# cmake -DSOURCE_DIR=.. -DPROJECT_VERSION=.. [-DTOLD_VERSION=..] -DINPUT=.. -DOUTPUT=.. -P write_version.cmake
#
# Writes INPUT to OUTPUT with DISTTF_VERSION filled in: TOLD_VERSION, or, if that is empty,
#   0.1.0              outside a git checkout (a source archive, a container), and at the commit
#                      that is tagged v0.1.0, without local changes
#   0.1.0+g1a2b3c4     in a checkout; with .dirty appended if tracked files have changes
set(DISTTF_VERSION ${PROJECT_VERSION})
find_program(GIT git)
if(TOLD_VERSION)
  set(DISTTF_VERSION ${TOLD_VERSION})
elseif(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(
    COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --abbrev=7 --exclude=* --dirty=.dirty
    RESULT_VARIABLE failed OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    execute_process(
      COMMAND ${GIT} -C ${SOURCE_DIR} describe --tags --exact-match --match=v${PROJECT_VERSION} --dirty
      OUTPUT_VARIABLE tag ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT tag STREQUAL "v${PROJECT_VERSION}")
      set(DISTTF_VERSION ${PROJECT_VERSION}+g${commit})
    endif()
  endif()
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
