// A user's own program beside the trainers of a deployment (`render --program -- COMMAND`).
//
// The image of the tasks that train is the user's. disttf gets into it by a step before the task
// starts, which copies it from disttf's own image, or it is there already. All other tasks run in
// disttf's image. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "main/render/deployment.h"

namespace disttf::render {

// The folder in the user's image into which disttf is copied.
inline constexpr const char* kBroughtFolder = "/opt/disttf";
// The container, service or task that copies it, and the volume that it copies it to.
inline constexpr const char* kBringer = "bring-disttf";
inline constexpr const char* kBroughtVolume = "disttf-program";

// Whether the tasks of this job run the user's program: they train.
[[nodiscard]] bool has_program(const Deployment& deployment, net::Job job);
// Whether a step copies disttf into the user's image.
[[nodiscard]] bool is_brought(const Deployment& deployment);

// The image of disttf, and that of a group's tasks.
[[nodiscard]] std::string disttf_image(const Deployment& deployment);
[[nodiscard]] std::string image_of(const Deployment& deployment, const TaskGroup& group);
// The path of disttf in the user's image; `brought`: where the step copies it to.
[[nodiscard]] std::string path_of_disttf(const Deployment& deployment,
                                         const std::string& brought = kBroughtFolder +
                                                                      std::string("/disttf"));
// The words after the name of the program that copies: "cp /disttf FOLDER/".
[[nodiscard]] std::vector<std::string> bringing_words(const std::string& folder = kBroughtFolder);

// The words at the end of a trainer's arguments: --program, its flags, --, COMMAND. Empty without a
// COMMAND.
[[nodiscard]] std::vector<std::string> program_words(const Deployment& deployment);

// Throws if a COMMAND has no image.
void check_program_image(const Deployment& deployment);
// Throws if disttf must be brought, for a target that cannot: says how it gets into the image.
void refuse_bringing(const Deployment& deployment, std::string_view target, std::string_view why);

}  // namespace disttf::render
