// parse_tf_config: any text gives a cluster that is valid, "train locally", or one short sentence
// that begins with the variable's name and fits one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "net/tf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto parsed = disttf::net::parse_tf_config(text);
    if (parsed) disttf::net::validate(parsed->cluster, parsed->task);
  } catch (const std::invalid_argument& error) {
    static constexpr std::size_t kLongestSentence = 1000;
    const std::string_view sentence = error.what();
    const bool one_line =
        std::all_of(sentence.begin(), sentence.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
    if (!sentence.starts_with("TF_CONFIG") || !one_line || sentence.size() > kLongestSentence) {
      std::abort();
    }
  }
  return 0;
}
