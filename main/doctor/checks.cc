#include "main/doctor/checks.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/ssl/context.hpp>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "math/kernels.h"
#include "math/large_copies.h"
#include "net/http/http_connection.h"
#include "net/memory/sharing_trial.h"
#include "net/tcp/sockets.h"
#include "net/waiting/descriptor.h"
#include "net/wire/text.h"
#include "run/process/confinement.h"
#include "run/process/machine.h"
#include "run/process/resource_limits.h"
#include "run/process/sandbox.h"

namespace disttf::roles {
namespace {

using Grade = Finding::Grade;

// An earlier time means that the clock was never set: no certificate is valid then.
constexpr std::time_t kLeastTime = 1'704'067'200;  // 2024-01-01T00:00:00Z

std::string message_of(int error) { return std::generic_category().message(error); }

}  // namespace

Finding check_kernel() {
  utsname names{};
  if (uname(&names) != 0) {
    return {"kernel", Grade::kLacking, message_of(errno)};
  }
  return {"kernel", Grade::kGood,
          fmt::format("{} {} on {}", names.sysname, names.release, names.machine)};
}

Finding check_seccomp() {
  constexpr int kFilters = 2;
  // This process has installed the filter of a task already, in carry_out().
  if (prctl(PR_GET_SECCOMP) == kFilters) {
    return {"seccomp", Grade::kGood, "system calls that a task does not need are refused"};
  }
  return {"seccomp", Grade::kLacking, "not available in this kernel or container"};
}

Finding check_no_new_privileges() {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
    return {"no_new_privs", Grade::kGood, "programs that a task starts gain no privileges"};
  }
  return {"no_new_privs", Grade::kLacking, "this kernel does not support it"};
}

Finding check_landlock() {
  // Tried in a thread of its own: this one must not lose its rights.
  const SandboxStatus here = probe_sandbox();
  if (!here.is_in_force) {
    return {"landlock", Grade::kLacking,
            here.version == 0
                ? "not available in this kernel or container"
                : fmt::format(
                      "ABI {} does not restrict files and ports: it needs version 2 and permission",
                      here.version)};
  }
  return {"landlock", Grade::kGood,
          fmt::format(
              "ABI {}: restricts a task to the files and folders that its flags name, {}ports{}",
              here.version, here.has_ports() ? "their " : "but any ",
              here.has_signals() ? ", and prevents signals to other processes" : "")};
}

Finding check_core_dumps() {
  // Set on this process: only a try shows whether the kernel allows it.
  if (keep_memory_private()) {
    return {"core_dumps", Grade::kGood,
            "disabled for a task with a secret; other processes of its user cannot read its memory "
            "(dumpable)"};
  }
  return {"core_dumps", Grade::kLacking, "cannot be disabled for a task with a secret"};
}

Finding check_shared_memory() {
  // Shares memory with itself: only a try shows what a container allows.
  std::string step;
  if (const std::error_code error = net::try_sharing(step)) {
    return {"shared_memory", Grade::kLacking,
            fmt::format("tensors use TCP, because this task is not able {}: {}", step,
                        error.message())};
  }
  return {
      "shared_memory", Grade::kGood,
      "tasks of this user on this machine, in one network namespace, exchange tensors through it"};
}

Finding check_processor() {
  const std::string sets = net::joined(math::supported_isas(), ", ", math::isa_name);
  const math::Isa fastest = math::supported_isas().front();
  // Of the fastest set, which is the default; a slower one may lack it.
  const bool has_bf16 = math::can_multiply(fastest, math::ComputeDtype::kBf16);
  return {"processor", fastest == math::Isa::kGeneric ? Grade::kLacking : Grade::kGood,
          fmt::format(
              "default --isa {}, of {}; bf16 {}{}", math::isa_name(fastest), sets,
              has_bf16 ? math::bf16_multiplier_text(math::bf16_multiplier(fastest)) : "not at all",
              math::large_copies() == math::LargeCopies::kByVectors ? "; large copies by vectors"
                                                                    : "")};
}

Finding check_clock() {
  const std::time_t now = std::time(nullptr);
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  std::tm parts{};
  std::array<char, 32> moment{};
  // A year that does not fit is possible: the clock may have any value.
  if (gmtime_r(&now, &parts) == nullptr ||
      std::strftime(moment.data(), moment.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return {"clock", Grade::kLacking, "its year is out of range"};
  }
  const std::string text = fmt::format("{}, steps of {} ns", moment.data(),
                                       resolution.tv_sec * 1'000'000'000 + resolution.tv_nsec);
  if (now < kLeastTime) {
    return {"clock", Grade::kLacking, text + "; it was never set, so https accepts no certificate"};
  }
  return {"clock", Grade::kGood, text};
}

Finding check_authorities() {
  asio::ssl::context context(asio::ssl::context::tls_client);
  std::string sentence;
  if (net::load_authorities(context, {}, sentence)) {
    return {"certificates", Grade::kLacking, sentence};
  }
  return {"certificates", Grade::kGood, "https uses " + net::find_ca_file()};
}

Finding check_port(std::uint16_t port) {
  try {
    asio::io_context context;
    // Closed at the end of the scope, so the port is free again for the task.
    const auto acceptor = net::listen_on(context, port);
    return {"port", Grade::kGood, fmt::format("{} is free", port)};
  } catch (const std::system_error& error) {
    // The only finding that prevents a task from running.
    return {"port", Grade::kBad,
            fmt::format("cannot listen on {}: {}{}", port, error.code().message(),
                        net::descriptor_hint(error.code())),
            kCannotListen};
  }
}

namespace {

// A parameter server needs some itself and some for each of its tasks: enough for hundreds.
constexpr rlim_t kManyDescriptors = 1024;

constexpr double kMebibyte = 1 << 20U;

}  // namespace

Finding check_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {"descriptors", Grade::kLacking, std::generic_category().message(errno)};
  }
  const std::string text =
      fmt::format("{} files and connections may be open (ulimit -n)", limit.rlim_cur);
  return {"descriptors", limit.rlim_cur < kManyDescriptors ? Grade::kLacking : Grade::kGood, text};
}

Finding check_processors() {
  const std::size_t count = allowed_processors();
  // A container's share of time does not show in the processors that it may use.
  const auto limit = ControlGroup().processors();
  // A share that exceeds the processors limits nothing.
  if (limit && *limit < static_cast<double>(count)) {
    return {"processors", Grade::kGood,
            fmt::format("{}, limited to {:.2f} by a control group", count, *limit)};
  }
  return {"processors", Grade::kGood, fmt::format("{}", count)};
}

Finding check_memory() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) {
    return {"memory", Grade::kLacking, std::generic_category().message(errno)};
  }
  const double total = static_cast<double>(machine.totalram) * machine.mem_unit;
  const auto limit = ControlGroup().memory_bytes();
  std::string text = fmt::format("{:.0f} MiB", total / kMebibyte);
  // A limit above the machine's memory has no effect.
  if (limit && static_cast<double>(*limit) < total) {
    text += fmt::format(", limited to {:.0f} by a control group",
                        static_cast<double>(*limit) / kMebibyte);
  }
  rlimit data{};
  // RLIMIT_DATA is also what launch sets by --memory.
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY) {
    text += fmt::format("; {:.0f} for each process (ulimit -d)",
                        static_cast<double>(data.rlim_cur) / kMebibyte);
  }
  return {"memory", Grade::kGood, text};
}

namespace {

std::string counted_gpus(std::size_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

// "NVIDIA's driver 550.54.15, 2 GPUs (NVIDIA H200, NVIDIA H200)"
std::string drivers_text(const GpuList& found, const std::filesystem::path& root) {
  const std::string version = nvidia_driver_version(root);
  if (found.devices.empty()) {
    return version.empty() ? "no GPU" : fmt::format("NVIDIA's driver {}, but no GPU", version);
  }
  const bool is_nvidia = found.variable == kCudaVisible;
  std::string text = is_nvidia ? "NVIDIA's driver" : "AMD's driver";
  if (is_nvidia && !version.empty()) {
    text += " " + version;
  }
  text += ", " + counted_gpus(found.devices.size());
  const std::string models = is_nvidia ? net::joined(nvidia_models(root), ", ") : std::string();
  return models.empty() ? text : text + " (" + models + ")";
}

}  // namespace

Finding check_gpus(const EnvironmentMap& environment, const std::filesystem::path& root) {
  const GpuList of_drivers = gpus_of_drivers(root);
  const std::string text = drivers_text(of_drivers, root);
  try {
    const GpuList usable = find_gpus(environment, root);
    if (usable.source == of_drivers.source) {
      return {"gpus", Grade::kGood, text};
    }
    return {
        "gpus", Grade::kGood,
        fmt::format("{}; {} lists {}", text, usable.source, counted_gpus(usable.devices.size()))};
  } catch (const std::invalid_argument& error) {
    return {"gpus", Grade::kLacking, text + "; " + error.what()};
  }
}

}  // namespace disttf::roles
