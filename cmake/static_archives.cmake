# What a static link takes from Debian's archives, less what it must not contain: each trimmed
# copy lies in DISTTF_ARCHIVE_DIR and is made anew when Debian's or this file is another one.
set(DISTTF_ARCHIVE_DIR ${CMAKE_BINARY_DIR}/static_archives)

# disttf_trim_archive(archive section..): DISTTF_ARCHIVE_DIR gets a copy of `archive` without
# these sections.
function(disttf_trim_archive archive)
  cmake_path(GET archive FILENAME name)
  set(copy ${DISTTF_ARCHIVE_DIR}/${name})
  # By what it contains: a package's files are as old as the package, not as its installation.
  file(SHA256 ${archive} digest)
  file(SHA256 ${CMAKE_CURRENT_FUNCTION_LIST_FILE} digest_of_this)
  set(origin "${digest} ${digest_of_this}")
  if(EXISTS ${copy} AND EXISTS ${copy}.origin)
    file(READ ${copy}.origin known)
    if(known STREQUAL origin)
      return()
    endif()
  endif()
  set(sections ${ARGN})
  list(TRANSFORM sections PREPEND --remove-section=)
  file(MAKE_DIRECTORY ${DISTTF_ARCHIVE_DIR})
  execute_process(COMMAND ${CMAKE_OBJCOPY} ${sections} ${archive} ${copy}.new
                  COMMAND_ERROR_IS_FATAL ANY)
  # Renamed when whole: an interrupted configure must not leave half an archive to link with.
  file(RENAME ${copy}.new ${copy})
  file(WRITE ${copy}.origin "${origin}")
endfunction()

# In a static link glibc makes the linker warn of each function that may load a shared library
# at run time. We know, and it is tested: host names are resolved in an empty root by
# tests/build/empty_root_test.sh, and the dlopen inside OpenSSL is never reached, since nothing
# loads an engine. A warning that is printed on every link hides the next one, which may be
# meant; but ld can only mute all of its messages at once (-w), errors too. So the texts of
# exactly these functions are taken out, and every other warning stays.
#
# Its tables for unwinding the stack go, too: 0.23 MB. Exceptions would need them where libc calls
# what throws: from qsort() and bsearch(), which nobody here calls, from pthread_once() and atexit(),
# to which nobody gives what throws, and at the beginning of main() and of a thread, where one that
# nobody has caught ends the process either way. No thread is cancelled.
find_library(DISTTF_LIBC_ARCHIVE NAMES libc.a REQUIRED)
disttf_trim_archive(${DISTTF_LIBC_ARCHIVE}
  .gnu.warning.dlopen .gnu.warning.getaddrinfo .gnu.warning.gethostbyname .eh_frame)

# OpenSSL is C, and no exception passes through it: Asio gives it memory to read from and no
# function of ours to call that could throw. Its tables for unwinding the stack are 0.5 MB.
foreach(library IN ITEMS Crypto SSL)
  get_target_property(archive OpenSSL::${library} IMPORTED_LOCATION)
  disttf_trim_archive(${archive} .eh_frame)
  cmake_path(GET archive FILENAME name)
  set_target_properties(OpenSSL::${library} PROPERTIES
    IMPORTED_LOCATION ${DISTTF_ARCHIVE_DIR}/${name})
endforeach()

# 1.04 MB of OpenSSL stays out of the file: openssl_provider.cc and openssl_left_out.cc say what. They
# name OpenSSL's insides, whose types neither compiler nor linker compares: they are those of 3.0, and
# other versions are linked whole. So is an archive that lacks an algorithm which the provider lists.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/openssl_provider.cc)
execute_process(COMMAND ${CMAKE_NM} --defined-only ${DISTTF_ARCHIVE_DIR}/libcrypto.a
                OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS cmake/openssl_provider.cc lines REGEX "^extern const OSSL_DISPATCH ossl_")
set(missing "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "ossl_[A-Za-z0-9_]+" symbol "${line}")
  if(NOT symbols MATCHES " ${symbol}\n")
    list(APPEND missing ${symbol})
  endif()
endforeach()
set(DISTTF_OPENSSL_TRIED 3.0.22)
set(DISTTF_OPENSSL_LINK "")
if(OPENSSL_VERSION MATCHES "^3\\.0\\." AND missing STREQUAL "")
  set(DISTTF_OPENSSL_CHOICE ON)
  # Debian's security updates move a function now and then, and the linker then wants an object that has
  # what is left out as well. With a version that nobody has tried, that is no reason to have no file: it
  # is larger. With the one that was, a function that is there twice is called by us.
  if(NOT OPENSSL_VERSION STREQUAL DISTTF_OPENSSL_TRIED)
    set(DISTTF_OPENSSL_LINK -Wl,-z,muldefs)
    message(STATUS "OpenSSL ${OPENSSL_VERSION}: the file was tried with ${DISTTF_OPENSSL_TRIED}, and may be larger.")
  endif()
else()
  set(DISTTF_OPENSSL_CHOICE OFF)
  message(STATUS "The file will contain all of OpenSSL ${OPENSSL_VERSION}: less is taken of 3.0 only; missing: ${missing}.")
endif()

# Functions that are linked, but never called: each name stands for abort() instead.
#
# libstdc++ tells the type of an exception that nobody has caught in words, for which it takes a
# demangler of 50 kB along; main.cc tells what it says.
set(DISTTF_LEFT_OUT -Wl,--defsym=_ZN9__gnu_cxx27__verbose_terminate_handlerEv=abort)
# libjpeg's choice of instructions names those for writing a JPEG, too: 130 kB. We only read them.
# Its objects are jchuff-sse2.asm.o and the like.
execute_process(COMMAND ${CMAKE_NM} -A --defined-only ${JPEG_LIBRARY}
                OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL ":(jc|jfdct|jquant)[a-z0-9]*-[a-z0-9]+\\.asm\\.o:[0-9a-f]+ [TR] [A-Za-z0-9_]+"
       symbols "${symbols}")
foreach(symbol IN LISTS symbols)
  string(REGEX REPLACE "^.* " "" symbol "${symbol}")
  list(APPEND DISTTF_LEFT_OUT -Wl,--defsym=${symbol}=abort)
endforeach()
