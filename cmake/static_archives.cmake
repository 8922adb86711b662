# Trims Debian's static archives for the static link: each trimmed copy lies in DISTTF_ARCHIVE_DIR
# and is made again when Debian's archive or this file changes.
set(DISTTF_ARCHIVE_DIR ${CMAKE_BINARY_DIR}/static_archives)

# disttf_trim_archive(archive section..): writes a copy of `archive` without these sections to
# DISTTF_ARCHIVE_DIR.
function(disttf_trim_archive archive)
  cmake_path(GET archive FILENAME name)
  set(copy ${DISTTF_ARCHIVE_DIR}/${name})
  # Detects changes by contents: a package's files have the package's date, not that of its
  # installation.
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
  # Rename the finished copy, so that an interrupted configure does not leave half an archive.
  file(RENAME ${copy}.new ${copy})
  file(WRITE ${copy}.origin "${origin}")
endfunction()

# In a static link glibc makes the linker warn of each function that may load a shared library at run time. These
# cases are known and tested: tests/build/empty_root_test.sh resolves host names in an empty root, and the dlopen
# inside OpenSSL is never reached, because no engine is loaded. A warning on every link would hide other warnings. ld
# can only suppress all of its messages at once (-w), errors included, so the warning sections of exactly these
# functions are removed.
#
# The unwind tables of libc are removed, too: 0.23 MB. Exceptions need them only where libc calls code that throws:
# qsort() and bsearch(), which are not used; pthread_once() and atexit(), whose callbacks never throw; and the start
# of main() and of threads, where an uncaught exception ends the process either way. No thread is cancelled.
find_library(DISTTF_LIBC_ARCHIVE NAMES libc.a REQUIRED)
disttf_trim_archive(${DISTTF_LIBC_ARCHIVE}
  .gnu.warning.dlopen .gnu.warning.getaddrinfo .gnu.warning.gethostbyname .eh_frame)

# OpenSSL is C, and no exception passes through it: Asio passes it memory to read from and no
# callback that could throw. Its unwind tables take 0.5 MB.
foreach(library IN ITEMS Crypto SSL)
  get_target_property(archive OpenSSL::${library} IMPORTED_LOCATION)
  disttf_trim_archive(${archive} .eh_frame)
  cmake_path(GET archive FILENAME name)
  set_target_properties(OpenSSL::${library} PROPERTIES
    IMPORTED_LOCATION ${DISTTF_ARCHIVE_DIR}/${name})
endforeach()

# The executable leaves out 1.04 MB of OpenSSL; openssl_provider.cc and openssl_left_out.cc list it. They use
# internal symbols of OpenSSL 3.0, whose types neither compiler nor linker checks, so other versions are linked
# whole. The same holds for an archive without an algorithm that the provider lists.
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
  # Debian's security updates sometimes move a function, and the linker then also needs an object that a stub
  # replaces. With an untried version that must not break the link, so duplicate definitions are allowed and the
  # executable is larger. With the tried version, a duplicate definition means that our code calls the function.
  if(NOT OPENSSL_VERSION STREQUAL DISTTF_OPENSSL_TRIED)
    set(DISTTF_OPENSSL_LINK -Wl,-z,muldefs)
    message(STATUS "OpenSSL ${OPENSSL_VERSION}: tested with ${DISTTF_OPENSSL_TRIED}; the executable may be larger.")
  endif()
else()
  set(DISTTF_OPENSSL_CHOICE OFF)
  message(STATUS "Linking all of OpenSSL ${OPENSSL_VERSION}: only a complete 3.0 is reduced; missing: ${missing}.")
endif()

# Functions that are linked but never called: each name is defined as abort().
#
# libstdc++ prints the type of an uncaught exception, for which it links a demangler of 50 kB.
# main.cc prints the exception's message itself.
set(DISTTF_LEFT_OUT -Wl,--defsym=_ZN9__gnu_cxx27__verbose_terminate_handlerEv=abort)
# libjpeg's CPU dispatch also references the code that writes JPEG: 130 kB. Files are only read. The
# objects are named jchuff-sse2.asm.o and so on.
execute_process(COMMAND ${CMAKE_NM} -A --defined-only ${JPEG_LIBRARY}
                OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL ":(jc|jfdct|jquant)[a-z0-9]*-[a-z0-9]+\\.asm\\.o:[0-9a-f]+ [TR] [A-Za-z0-9_]+"
       symbols "${symbols}")
foreach(symbol IN LISTS symbols)
  string(REGEX REPLACE "^.* " "" symbol "${symbol}")
  list(APPEND DISTTF_LEFT_OUT -Wl,--defsym=${symbol}=abort)
endforeach()

# OpenSSL has two implementations of the curve P-256 for x86-64. The faster one has a table of 150 kB. The other one is
# in constant time, too, and slower, which only a handshake notices. (The two functions of the first one that OpenSSL
# then still names are for its groups, of which there are none.)
if(DISTTF_OPENSSL_CHOICE)
  execute_process(COMMAND ${CMAKE_NM} --defined-only ${DISTTF_ARCHIVE_DIR}/libcrypto.a
                  OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  if(symbols MATCHES " EC_GFp_nistz256_method\n" AND symbols MATCHES " EC_GFp_nistp256_method\n")
    list(APPEND DISTTF_LEFT_OUT -Wl,--defsym=EC_GFp_nistz256_method=EC_GFp_nistp256_method
                                -Wl,--defsym=EC_nistz256_pre_comp_dup=abort
                                -Wl,--defsym=EC_nistz256_pre_comp_free=abort)
  endif()
endif()
