#include "main/licenses.h"

#include <system_error>
#include <vector>

#include "data/gzip.h"

namespace disttf {

std::string licenses_text() {
  const EmbeddedText embedded = embedded_licenses();
  std::vector<std::uint8_t> text;
  // The texts are embedded compressed, because every copy of the program carries them.
  if (const std::error_code error = data::gunzip(embedded.gzip, embedded.bytes, text)) {
    throw std::system_error(error, "the licence texts in this program are damaged");
  }
  return {text.begin(), text.end()};
}

}  // namespace disttf
