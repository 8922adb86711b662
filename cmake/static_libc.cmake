# Sets DISTTF_STATIC_LIBC_DIR: a folder with a copy of glibc's libc.a that links in silence.
#
# In a static link glibc makes the linker warn of each function that may load a shared library
# at run time. We know, and it is tested: host names are resolved in an empty root by
# tests/build/empty_root_test.sh, and the dlopen inside OpenSSL is never reached, since nothing
# loads an engine. A warning that is printed on every link hides the next one, which may be
# meant; but ld can only mute all of its messages at once (-w), errors too. So the texts of
# exactly these functions are taken out of a copy, and every other warning stays.
find_library(DISTTF_LIBC_ARCHIVE NAMES libc.a REQUIRED)
set(DISTTF_STATIC_LIBC_DIR ${CMAKE_BINARY_DIR}/static_libc)
set(known_functions dlopen getaddrinfo gethostbyname)

if(NOT EXISTS ${DISTTF_STATIC_LIBC_DIR}/libc.a
   OR ${DISTTF_LIBC_ARCHIVE} IS_NEWER_THAN ${DISTTF_STATIC_LIBC_DIR}/libc.a
   OR ${CMAKE_CURRENT_LIST_FILE} IS_NEWER_THAN ${DISTTF_STATIC_LIBC_DIR}/libc.a)
  list(TRANSFORM known_functions PREPEND --remove-section=.gnu.warning.)
  file(MAKE_DIRECTORY ${DISTTF_STATIC_LIBC_DIR})
  execute_process(
    COMMAND ${CMAKE_OBJCOPY} ${known_functions} ${DISTTF_LIBC_ARCHIVE}
            ${DISTTF_STATIC_LIBC_DIR}/libc.a.new
    COMMAND_ERROR_IS_FATAL ANY)
  # Renamed when whole: an interrupted configure must not leave half an archive to link with.
  file(RENAME ${DISTTF_STATIC_LIBC_DIR}/libc.a.new ${DISTTF_STATIC_LIBC_DIR}/libc.a)
endif()
