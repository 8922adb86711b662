// Runs a fuzz target once for each file named on the command line, and for each file of each
// directory named there. Exits with 1 if there is no file: an empty corpus tests nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::filesystem::path& file) {
  // The buffer has exactly the input's size, so that a sanitizer detects any read past the end.
  std::vector<std::uint8_t> input(std::filesystem::file_size(file));
  std::ifstream stream(file, std::ios::binary);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  stream.read(reinterpret_cast<char*>(input.data()), static_cast<std::streamsize>(input.size()));
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

int replay_all(const std::vector<std::string>& arguments) {
  std::size_t count = 0;
  for (const std::string& argument : arguments) {
    for (const std::filesystem::path& file : files_of(argument)) {
      // Prints the name before the run: after a crash, the last name is the failing file.
      std::fprintf(stderr, "%s\n", file.c_str());
      replay(file);
      ++count;
    }
  }
  std::fprintf(stderr, "replayed %zu files\n", count);
  return count == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay_all({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
