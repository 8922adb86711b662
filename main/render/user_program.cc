#include "main/render/user_program.h"

#include <stdexcept>

namespace disttf::render {

bool has_program(const Deployment& deployment, net::Job job) {
  return !deployment.command.empty() && (job == net::Job::kWorker || job == net::Job::kChief);
}

bool is_brought(const Deployment& deployment) {
  return !deployment.command.empty() && deployment.program.empty();
}

std::string disttf_image(const Deployment& deployment) {
  // Without a COMMAND --image is disttf's own.
  const std::string& image =
      deployment.command.empty() ? deployment.image : deployment.disttf_image;
  return image.empty() ? "disttf" : image;
}

std::string image_of(const Deployment& deployment, const TaskGroup& group) {
  if (!has_program(deployment, group.job)) {
    return disttf_image(deployment);
  }
  return group.image.empty() ? deployment.image : group.image;
}

std::string path_of_disttf(const Deployment& deployment, const std::string& brought) {
  return is_brought(deployment) ? brought : deployment.program;
}

std::vector<std::string> bringing_words(const std::string& folder) {
  // With the slash: the folder exists, and the file keeps its name.
  return {"cp", "/disttf", folder + "/"};
}

std::vector<std::string> program_words(const Deployment& deployment) {
  if (deployment.command.empty()) {
    return {};
  }
  std::vector<std::string> words = {"--program"};
  words.insert(words.end(), deployment.command_flags.begin(), deployment.command_flags.end());
  words.emplace_back("--");
  words.insert(words.end(), deployment.command.begin(), deployment.command.end());
  return words;
}

void check_program_image(const Deployment& deployment) {
  if (!deployment.command.empty() && deployment.image.empty()) {
    throw std::invalid_argument(
        "--image: missing; with --program it is the image in which COMMAND runs");
  }
}

void refuse_bringing(const Deployment& deployment, std::string_view target, std::string_view why) {
  if (is_brought(deployment)) {
    throw std::invalid_argument("--program: " + std::string(target) +
                                " cannot bring disttf into the image, because " + std::string(why) +
                                "; add `COPY --from=disttf /disttf /disttf` to the image's "
                                "Containerfile, or mount a folder "
                                "that has it, then give its path: --program=/disttf");
  }
}

}  // namespace disttf::render
