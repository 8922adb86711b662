# cmake -DGZIP=gzip -DFOLDER=source-tree -DOUTPUT=license_texts.cc -P embed_licenses.cmake
#
# Writes a source file that contains NOTICE, LICENSE and the texts of deploy/licenses/, joined under
# headings and compressed. The output is reproducible: gzip -n stores no name and no time.
file(GLOB texts ${FOLDER}/deploy/licenses/*.txt)
list(SORT texts)
file(READ ${FOLDER}/NOTICE all)
foreach(path IN ITEMS ${FOLDER}/LICENSE LISTS texts)
  get_filename_component(name ${path} NAME_WE)
  if(path MATCHES "licenses/(.*)[.]txt$")
    set(name ${CMAKE_MATCH_1})
  elseif(path STREQUAL "${FOLDER}/LICENSE")
    set(name "disttf, OpenSSL: Apache-2.0")
  endif()
  file(READ ${path} text)
  string(APPEND all "\n==== ${name} ====\n\n${text}")
endforeach()
file(WRITE ${OUTPUT}.txt "${all}")
execute_process(COMMAND ${GZIP} -9nc ${OUTPUT}.txt OUTPUT_FILE ${OUTPUT}.gz COMMAND_ERROR_IS_FATAL ANY)
file(SIZE ${OUTPUT}.txt size)
file(READ ${OUTPUT}.gz bytes HEX)
file(REMOVE ${OUTPUT}.gz ${OUTPUT}.txt)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(....................................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "// Written by cmake/embed_licenses.cmake from NOTICE, LICENSE and deploy/licenses/.
#include \"main/licenses.h\"

namespace disttf {
namespace {

constexpr unsigned char kBytes[] = {
${bytes}};

}  // namespace

EmbeddedText embedded_licenses() noexcept { return {.gzip = kBytes, .bytes = ${size}}; }

}  // namespace disttf
")
