// test_mirror: the test mirror as a program, for tests of the real binary.
//
//   test_mirror --dir D [--mode good|html|stall|break|redirect_loop|404] [--port-file F] [--ca-file
//   F]
//
// Prints its URL on standard output (and writes its port to F), then serves the files of D until
// standard input closes or it is killed. With --ca-file it serves TLS as 127.0.0.1 and writes the
// certificate of its authority to F. `stall` and `break` take effect after kPartBytes bytes of a
// body.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/mirror_server.h"

namespace disttf::test_support {
namespace {

// Large enough to count as progress: a client may give up on a mirror that sends less on each
// attempt.
constexpr std::size_t kPartBytes = 1'000'000;

std::map<std::string, std::string> read_flags(int argc, char** argv) {
  std::map<std::string, std::string> flags{
      {"--dir", ""}, {"--mode", "good"}, {"--port-file", ""}, {"--ca-file", ""}};
  for (int i = 1; i < argc; i += 2) {
    const auto flag = flags.find(argv[i]);
    if (flag == flags.end() || i + 1 == argc) {
      throw std::invalid_argument(std::string("unknown flag or no value: ") + argv[i]);
    }
    flag->second = argv[i + 1];
  }
  return flags;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), &std::fclose);
  if (!file) throw std::runtime_error("cannot open " + path);
  return file;
}

Files read_files(const std::string& directory) {
  Files files;
  if (directory.empty()) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::string contents(entry.file_size(), '\0');
    const File file = open_file(entry.path().string(), "rb");
    contents.resize(std::fread(contents.data(), 1, contents.size(), file.get()));
    std::string target = "/";
    files[target.append(entry.path().filename().string())] = std::move(contents);
  }
  return files;
}

// Writes a temporary file and renames it, so that a reader never sees half a number.
void write_port(const std::string& path, unsigned port) {
  const std::string temporary = path + ".new";
  std::fprintf(open_file(temporary, "w").get(), "%u\n", port);
  std::filesystem::rename(temporary, path);
}

Handler handler_for(const std::string& mode, Files files) {
  if (mode == "good") return serve(std::move(files));
  if (mode == "html") return serve_page();
  if (mode == "stall") return stall_after(std::move(files), kPartBytes);
  if (mode == "break") return break_after(std::move(files), kPartBytes);
  if (mode == "404") return answer_not_found();
  if (mode == "redirect_loop") {
    // Redirects to a new URL each time: a client that detects only cycles would follow without end.
    return [](const MirrorRequest& request, const MirrorConnection& connection) {
      connection.respond("302 Found", "", "Location: " + request.target + "x\r\n");
    };
  }
  throw std::invalid_argument("unknown --mode " + mode);
}

OpenSsl<SSL_CTX> make_identity(const std::string& ca_file) {
  if (ca_file.empty()) return nullptr;
  const TestAuthority authority;
  authority.write_certificate(ca_file);
  return authority.issue("IP:127.0.0.1");
}

void run(int argc, char** argv) {
  const auto flags = read_flags(argc, argv);
  const MirrorServer server(handler_for(flags.at("--mode"), read_files(flags.at("--dir"))),
                            make_identity(flags.at("--ca-file")));
  if (const std::string& path = flags.at("--port-file"); !path.empty()) {
    write_port(path, server.port());
  }
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  std::array<char, 256> ignored{};
  while (read(STDIN_FILENO, ignored.data(), ignored.size()) > 0) {
  }
}

}  // namespace
}  // namespace disttf::test_support

int main(int argc, char** argv) {
  try {
    disttf::test_support::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "test_mirror: %s\n", error.what());
    return 2;
  }
}
