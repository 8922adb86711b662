# Defines each package as one imported or interface target; all packages are from Debian 12.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(DISTTF_STATIC)
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  set(ZLIB_USE_STATIC_LIBS TRUE)
  set(disttf_archive_suffix ".a")
endif()
find_package(OpenSSL REQUIRED)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(HTTP_PARSER_INCLUDE_DIR http_parser.h REQUIRED)
find_path(ZLIB_INCLUDE_DIR zlib.h REQUIRED)
find_path(MINIZIP_INCLUDE_DIR minizip/unzip.h REQUIRED)
find_library(HTTP_PARSER_LIBRARY NAMES libhttp_parser${disttf_archive_suffix} http_parser REQUIRED)
find_library(MINIZIP_LIBRARY NAMES libminizip${disttf_archive_suffix} minizip REQUIRED)
find_library(ZLIB_LIBRARY NAMES libz${disttf_archive_suffix} z REQUIRED)

# Stubs that reduce OpenSSL: objects that the linker takes before the archives. Only a static link uses them
# (cmake/static_archives.cmake).
add_library(disttf_openssl OBJECT EXCLUDE_FROM_ALL cmake/openssl_provider.cc cmake/openssl_left_out.cc)
target_link_libraries(disttf_openssl PRIVATE disttf_flags OpenSSL::Crypto)
target_compile_options(disttf_openssl PRIVATE $<$<CONFIG:Release>:-Os>)
# The stubs define engines and key methods, which are deprecated.
target_compile_definitions(disttf_openssl PRIVATE OPENSSL_SUPPRESS_DEPRECATED)

add_library(disttf_asio INTERFACE)
target_include_directories(disttf_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# Asio 1.22 looks for <experimental/coroutine> with clang, although <coroutine> exists; the definition corrects that.
# Asio's handlers are allocated with operator new, which has a reserve (run/process/memory_reserve.h), and not with
# std::aligned_alloc().
target_compile_definitions(disttf_asio INTERFACE
  ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_HAS_CO_AWAIT=1 ASIO_DISABLE_STD_ALIGNED_ALLOC)
# g++ 12 warns, where Asio's scheduler is inlined into our sources, of a pointer that could be null, and of a
# mismatched allocator for coroutine frames (range_server.cc, failover_thread.cc). Both warnings are false.
target_compile_options(disttf_asio INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-null-dereference>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-mismatched-new-delete>)
target_link_libraries(disttf_asio INTERFACE Threads::Threads)

add_library(disttf_http_parser INTERFACE)
target_include_directories(disttf_http_parser SYSTEM INTERFACE ${HTTP_PARSER_INCLUDE_DIR})
target_link_libraries(disttf_http_parser INTERFACE ${HTTP_PARSER_LIBRARY})

add_library(disttf_zlib INTERFACE)
target_include_directories(disttf_zlib SYSTEM INTERFACE ${ZLIB_INCLUDE_DIR})
target_link_libraries(disttf_zlib INTERFACE ${ZLIB_LIBRARY})

find_path(PNG_INCLUDE_DIR png.h REQUIRED)
find_path(JPEG_INCLUDE_DIR jpeglib.h REQUIRED)
find_library(PNG_LIBRARY NAMES libpng16${disttf_archive_suffix} png16 REQUIRED)
find_library(JPEG_LIBRARY NAMES libjpeg${disttf_archive_suffix} jpeg REQUIRED)
# A separate target, so that zlib follows libpng wherever it is linked.
add_library(disttf_png UNKNOWN IMPORTED)
set_target_properties(disttf_png PROPERTIES IMPORTED_LOCATION ${PNG_LIBRARY})
target_link_libraries(disttf_png INTERFACE ${ZLIB_LIBRARY} m)
add_library(disttf_images INTERFACE)
target_include_directories(disttf_images SYSTEM INTERFACE ${PNG_INCLUDE_DIR} ${JPEG_INCLUDE_DIR})
target_link_libraries(disttf_images INTERFACE disttf_png ${JPEG_LIBRARY})

# Zip files are only read; the library that writes them is used in tests alone.
add_library(disttf_minizip INTERFACE)
target_include_directories(disttf_minizip SYSTEM INTERFACE ${MINIZIP_INCLUDE_DIR})
target_link_libraries(disttf_minizip INTERFACE ${MINIZIP_LIBRARY} disttf_zlib)

# Debian ships spdlog and fmt only as shared libraries. spdlog works header-only. fmt is compiled
# here, once: header-only, every source that formats a number would contain it.
add_library(disttf_fmt STATIC cmake/fmt_library.cc)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
target_include_directories(disttf_fmt SYSTEM PUBLIC ${FMT_INCLUDE_DIR})
target_link_libraries(disttf_fmt PRIVATE disttf_flags)
target_compile_options(disttf_fmt PRIVATE $<$<CONFIG:Release>:-Os>)

find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(disttf_toml INTERFACE)
target_include_directories(disttf_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})
# Model files are only read, never written.
target_compile_definitions(disttf_toml INTERFACE TOML_ENABLE_FORMATTERS=0)

add_library(disttf_spdlog INTERFACE)
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
target_include_directories(disttf_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR})
target_compile_definitions(disttf_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(disttf_spdlog INTERFACE disttf_fmt)
