// The path of docs/flags.md in the source tree.
#pragma once

namespace disttf {

inline constexpr const char* kFlagDocumentPath = DISTTF_SOURCE_DIR "/docs/flags.md";

}  // namespace disttf
