# The packages, each as one imported or interface target; all from Debian 12.
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

# OpenSSL without what TLS has given up: objects that the linker takes before the archives. Only a static
# link has them (cmake/static_archives.cmake).
add_library(disttf_openssl OBJECT EXCLUDE_FROM_ALL cmake/openssl_provider.cc cmake/openssl_left_out.cc)
target_link_libraries(disttf_openssl PRIVATE disttf_flags OpenSSL::Crypto)
target_compile_options(disttf_openssl PRIVATE $<$<CONFIG:Release>:-Os>)
# Engines and methods of keys, which are deprecated, are what is left out.
target_compile_definitions(disttf_openssl PRIVATE OPENSSL_SUPPRESS_DEPRECATED)

add_library(disttf_asio INTERFACE)
target_include_directories(disttf_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# Asio 1.22 asks clang for <experimental/coroutine>, though it has <coroutine>: so it is told. Its
# handlers come from operator new, which has a reserve (roles/process/memory_reserve.h), and not from
# std::aligned_alloc().
target_compile_definitions(disttf_asio INTERFACE
  ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_HAS_CO_AWAIT=1 ASIO_DISABLE_STD_ALIGNED_ALLOC)
# g++ 12 takes Asio's scheduler, inlined into our files, for a pointer that could be null, and, where it
# inlines that, the allocator of coroutines' frames for a mismatched one (range_server.cc,
# failover_thread.cc).
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
# A target of its own, so that zlib is behind it wherever it is linked.
add_library(disttf_png UNKNOWN IMPORTED)
set_target_properties(disttf_png PROPERTIES IMPORTED_LOCATION ${PNG_LIBRARY})
target_link_libraries(disttf_png INTERFACE ${ZLIB_LIBRARY} m)
add_library(disttf_images INTERFACE)
target_include_directories(disttf_images SYSTEM INTERFACE ${PNG_INCLUDE_DIR} ${JPEG_INCLUDE_DIR})
target_link_libraries(disttf_images INTERFACE disttf_png ${JPEG_LIBRARY})

# Zip files, which are read; what writes them is in tests alone.
add_library(disttf_minizip INTERFACE)
target_include_directories(disttf_minizip SYSTEM INTERFACE ${MINIZIP_INCLUDE_DIR})
target_link_libraries(disttf_minizip INTERFACE ${MINIZIP_LIBRARY} disttf_zlib)

# Debian ships spdlog and fmt as shared libraries only. spdlog works header-only; fmt is compiled
# here, once: header-only it would be in every source that formats a number.
add_library(disttf_fmt STATIC cmake/fmt_library.cc)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
target_include_directories(disttf_fmt SYSTEM PUBLIC ${FMT_INCLUDE_DIR})
target_link_libraries(disttf_fmt PRIVATE disttf_flags)
target_compile_options(disttf_fmt PRIVATE $<$<CONFIG:Release>:-Os>)

find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(disttf_toml INTERFACE)
target_include_directories(disttf_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})
# Model files are read, never written.
target_compile_definitions(disttf_toml INTERFACE TOML_ENABLE_FORMATTERS=0)

add_library(disttf_spdlog INTERFACE)
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
target_include_directories(disttf_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR})
target_compile_definitions(disttf_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(disttf_spdlog INTERFACE disttf_fmt)
