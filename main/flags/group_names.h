// The groups of flags that code outside of the group refers to, by their titles in --help.
#pragma once

namespace disttf {

inline constexpr const char* kLaunchGroup = "Launch";
inline constexpr const char* kPageGroup = "Page";
inline constexpr const char* kCommandGroup = "Launch of any program: launch [FLAGS] -- COMMAND";
inline constexpr const char* kProgramGroup = "Your own program: --program -- COMMAND";
inline constexpr const char* kClusterGroup = "Cluster";
inline constexpr const char* kTransportGroup = "Transport and threads";
inline constexpr const char* kFindGroup =
    "Cluster found in the environment (docs/resolvers.md): what it leaves open";
inline constexpr const char* kRenderGroup = "Deployment";
// Hidden from --help.
inline constexpr const char* kHiddenGroup = "";

}  // namespace disttf
