// read_dcos_options: any text gives options within their limits, or one short sentence that begins
// with the flag's name and fits on one line.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "main/render/dcos_options.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const disttf::render::DcosOptions options = disttf::render::read_dcos_options(text);
    for (const disttf::render::DcosTasks* tasks : {&options.ps, &options.workers}) {
      disttf::fuzz::require(tasks->count >= 1 && tasks->count <= 1000 && tasks->port >= 1);
    }
    disttf::fuzz::require(options.train_dir.empty() || options.train_dir.front() == '/');
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "--options", 1000);
  }
  return 0;
}
