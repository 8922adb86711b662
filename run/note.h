// A log line, as a core puts it into its effects; run/process/log.h writes it.
#pragma once

#include <cstdint>
#include <string>

namespace disttf::roles {

struct Note {
  enum class Level : std::uint8_t { kInfo, kWarning, kDebug };
  Level level = Level::kInfo;
  std::string text;
};

}  // namespace disttf::roles
