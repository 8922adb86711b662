# cmake -DGZIP=gzip -DFOLDER=web "-DFILES=a.js;b/c.js" -DOUTPUT=assets.cc -P embed.cmake
#
# Writes a source file with each file's compressed bytes, URL path, media type and ETag.
set(types ".html=text/html; charset=utf-8" ".css=text/css; charset=utf-8"
    ".js=text/javascript; charset=utf-8")
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  set(path "${FOLDER}/${file}")
  execute_process(COMMAND ${GZIP} -9nc ${path} OUTPUT_FILE ${OUTPUT}.gz COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${OUTPUT}.gz bytes HEX)
  file(REMOVE ${OUTPUT}.gz)
  file(SHA256 ${path} tag)
  string(SUBSTRING ${tag} 0 16 tag)
  file(SIZE ${path} size)
  get_filename_component(name ${file} NAME)
  get_filename_component(ending ${file} LAST_EXT)
  set(type "")
  foreach(pair IN LISTS types)
    if(pair MATCHES "^${ending}=(.*)$")
      set(type "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(NOT type)
    message(FATAL_ERROR "${file}: the page has no files that end in ${ending}")
  endif()
  set(address "/assets/${name}")
  if(name STREQUAL "index.html")
    set(address "/")
  endif()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(....................................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kBytes${number}[] = {\n${bytes}};\n")
  string(APPEND rows "    {\"${address}\", \"${type}\", \"\\\"${tag}\\\"\", kBytes${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Made of the files of web/ by embed.cmake.
#include \"web/assets.h\"

namespace disttf::web {
namespace {

${arrays}
constexpr Asset kAssets[] = {
${rows}};

}  // namespace

std::span<const Asset> assets() noexcept { return kAssets; }

}  // namespace disttf::web
")
