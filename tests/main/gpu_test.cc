// GPUs: those of a variable or of drivers (files with their formats), and which trainer of a launch
// gets which.
#include <gmock/gmock.h>

#include <asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "main/doctor/checks.h"
#include "roles/launch/core/gpu_assignment.h"
#include "roles/launch/shell/local_task.h"
#include "run/process/gpus.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string gpu_refusal(const std::function<void()>& work) {
  return sentence_of(work, "(accepted)");
}

// ---- The value of a variable ----

TEST(VisibleDevices, AreNumbersAndUuids) {
  EXPECT_THAT(read_visible_devices("X", "2,0"), ElementsAre("2", "0"));
  EXPECT_THAT(read_visible_devices("X", " 1 ,\t3"), ElementsAre("1", "3"));
  EXPECT_THAT(read_visible_devices("X", "GPU-8932f937-d72c,MIG-7cbd3aa8"),
              ElementsAre("GPU-8932f937-d72c", "MIG-7cbd3aa8"));
}

TEST(VisibleDevices, EndAtTheFirstEntryThatIsNone) {
  for (const char* none : {"", "-1", "none", "NoDevFiles", ",0", "void,0"}) {
    EXPECT_THAT(read_visible_devices("X", none), IsEmpty()) << none;
  }
  EXPECT_THAT(read_visible_devices("X", "0,-1,1"), ElementsAre("0"));
  EXPECT_THAT(read_visible_devices("X", "0,1,"), ElementsAre("0", "1"));
}

TEST(VisibleDevices, OccurOnce) {
  EXPECT_EQ(gpu_refusal([] { static_cast<void>(read_visible_devices("X", "0,1,0")); }),
            "X: names the GPU \"0\" twice; once is allowed");
}

// ---- The drivers ----

class GpusOfAMachine : public testing::Test {
 protected:
  void file(const std::string& name, const std::string& text = {}) {
    const auto path = machine_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    data::test::write(path, data::test::bytes_of(text));
  }
  void nvidia(const std::string& address, int minor, const std::string& model = "NVIDIA H200") {
    file("proc/driver/nvidia/gpus/" + address + "/information",
         "Model: \t\t " + model + "\nIRQ:   \t\t 24\nGPU UUID: \t GPU-8932f937\nDevice Minor: \t " +
             std::to_string(minor) + "\n");
  }
  void amd(int node, int simd_count, int render_minor) {
    file("sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
         "cpu_cores_count 0\nsimd_count " + std::to_string(simd_count) + "\ndrm_render_minor " +
             std::to_string(render_minor) + "\n");
  }
  GpuList found(const EnvironmentMap& environment = {}) {
    return find_gpus(environment, machine_.path());
  }
  std::string doctor(const EnvironmentMap& environment = {}) {
    const Finding finding = check_gpus(environment, machine_.path());
    EXPECT_EQ(finding.exit_code, kDone);
    return finding.text;
  }

  data::test::ScratchDirectory machine_;
};

TEST_F(GpusOfAMachine, AreNone) {
  EXPECT_THAT(found().devices, IsEmpty());
  EXPECT_EQ(doctor(), "no GPU");
}

TEST_F(GpusOfAMachine, AreThoseOfNvidiasDriver) {
  nvidia("0000:4a:00.0", 1);
  nvidia("0000:01:00.0", 0, "NVIDIA A100");
  file("proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
       "GCC version:  gcc version 12.2.0\n");
  EXPECT_EQ(found().variable, "CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(found().devices, ElementsAre("0", "1"));
  EXPECT_EQ(doctor(), "NVIDIA's driver 550.54.15, 2 GPUs (NVIDIA A100, NVIDIA H200)");
}

TEST_F(GpusOfAMachine, TheOpenDriverHasAVersionToo) {
  file("proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build\n");
  EXPECT_EQ(nvidia_driver_version(machine_.path()), "560.35.03");
  EXPECT_EQ(doctor(), "NVIDIA's driver 560.35.03, but no GPU");
}

// A container that may use one GPU may see the files of all.
TEST_F(GpusOfAMachine, WithoutADeviceDoNotCount) {
  nvidia("0000:01:00.0", 0);
  nvidia("0000:02:00.0", 1);
  nvidia("0000:03:00.0", 12);
  file("dev/nvidiactl");
  file("dev/nvidia-uvm");
  EXPECT_EQ(found().devices.size(), 3U) << "the driver makes the devices on first use";
  file("dev/nvidia1");
  EXPECT_THAT(found().devices, ElementsAre("0"));
}

TEST_F(GpusOfAMachine, AreDevicesWhereThereIsNoDriversFolder) {
  for (const char* name : {"nvidia0", "nvidia10", "nvidiactl", "nvidia-modeset", "nvidia"}) {
    file(std::string("dev/") + name);
  }
  EXPECT_THAT(found().devices, ElementsAre("0", "1"));
  EXPECT_EQ(doctor(), "NVIDIA's driver, 2 GPUs");
}

TEST_F(GpusOfAMachine, MayBeAmds) {
  amd(0, 0, 0);  // a processor
  amd(1, 256, 128);
  amd(2, 256, 129);
  EXPECT_THAT(found().devices, IsEmpty()) << "there is no /dev/kfd";
  file("dev/kfd");
  file("dev/dri/renderD129");
  EXPECT_EQ(found().variable, "ROCR_VISIBLE_DEVICES");
  EXPECT_THAT(found().devices, ElementsAre("0"));
  file("dev/dri/renderD128");
  EXPECT_EQ(doctor(), "AMD's driver, 2 GPUs");
}

TEST_F(GpusOfAMachine, AreThoseOfAVariableIfItIsSet) {
  nvidia("0000:01:00.0", 0);
  EXPECT_THAT(found({{"CUDA_VISIBLE_DEVICES", "5,6"}}).devices, ElementsAre("5", "6"));
  EXPECT_THAT(found({{"CUDA_VISIBLE_DEVICES", ""}}).devices, IsEmpty());
  EXPECT_EQ(found({{"ROCR_VISIBLE_DEVICES", "1"}}).variable, "ROCR_VISIBLE_DEVICES");
  EXPECT_EQ(found({{"ROCR_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "0"}}).variable,
            "HIP_VISIBLE_DEVICES");
  EXPECT_EQ(doctor({{"CUDA_VISIBLE_DEVICES", ""}}),
            "NVIDIA's driver, 1 GPU (NVIDIA H200); CUDA_VISIBLE_DEVICES lists 0 GPUs");
  EXPECT_EQ(
      doctor({{"CUDA_VISIBLE_DEVICES", "0,0"}}),
      "NVIDIA's driver, 1 GPU (NVIDIA H200); CUDA_VISIBLE_DEVICES: names the GPU \"0\" twice; "
      "once is allowed");
}

// ---- The assignment ----

GpuOptions options_for(std::size_t per_worker, std::vector<std::string> devices,
                       bool share = false) {
  return {.per_worker = per_worker,
          .share = share,
          .list = {.devices = std::move(devices), .source = "CUDA_VISIBLE_DEVICES"}};
}

TEST(GpuAssignment, TrainerIGetsTheIthPart) {
  const GpuOptions options = options_for(2, {"4", "GPU-a", "0", "1"});
  check_gpus(options, 2);
  EXPECT_THAT(gpus_of(options, 0), ElementsAre("4", "GPU-a"));
  EXPECT_THAT(gpus_of(options, 1), ElementsAre("0", "1"));
}

TEST(GpuAssignment, RefusesTooFew) {
  EXPECT_EQ(gpu_refusal([] {
              check_gpus(options_for(2, {"0", "1", "2"}), 2);
            }),
            "--gpus_per_worker: 2 trainers with 2 GPUs each need 4, but there are 3 "
            "(CUDA_VISIBLE_DEVICES); start fewer workers, or give several of them the same GPU "
            "with --share_gpus");
  for (const bool share : {false, true}) {
    EXPECT_EQ(gpu_refusal([share] { check_gpus(options_for(1, {}, share), 1); }),
              "--gpus_per_worker: 1 is not possible, because there are 0 GPUs "
              "(CUDA_VISIBLE_DEVICES); leave it out to compute on CPUs");
  }
  check_gpus(options_for(1, {"0", "1"}), 2);
  check_gpus({}, 100);  // none are assigned
}

TEST(GpuAssignment, SharedOnesStartOver) {
  const GpuOptions options = options_for(2, {"a", "b", "c"}, true);
  check_gpus(options, 3);
  EXPECT_THAT(gpus_of(options, 1), ElementsAre("c", "a"));
  EXPECT_THAT(gpus_of(options, 2), ElementsAre("b", "c"));
  EXPECT_EQ(gpu_refusal([] { check_gpus(options_for(2, {"a"}, true), 3); }),
            "--gpus_per_worker: the 2 GPUs of a worker must differ, but there is 1 "
            "(CUDA_VISIBLE_DEVICES); ask for fewer");
}

TEST(GpuAssignment, IsToldByVariables) {
  GpuOptions options = options_for(2, {"0", "1", "2", "3"});
  EXPECT_THAT(gpu_variables(options, 1),
              ElementsAre("CUDA_VISIBLE_DEVICES=2,3", "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                          "CUBLAS_WORKSPACE_CONFIG=:4096:8"));
  EXPECT_THAT(gpu_variables(options, std::nullopt), ElementsAre("CUDA_VISIBLE_DEVICES="));
  options.has_device_order = options.has_cublas_workspace = true;
  EXPECT_THAT(gpu_variables(options, 0), ElementsAre("CUDA_VISIBLE_DEVICES=0,1"));
  options.list.variable = kRocrVisible;
  EXPECT_THAT(gpu_variables(options, 0), ElementsAre("ROCR_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(
      gpu_variables(options, std::nullopt),
      ElementsAre("CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES="));
  EXPECT_THAT(gpu_variables({}, 0), IsEmpty());
}

// A separate chief trains, too; ps and evaluator do not.
TEST(GpuAssignment, EachTaskOfALaunchHasItsOwn) {
  asio::io_context context;
  LaunchOptions options;
  options.chief = true;
  options.gpus = options_for(1, {"7", "8", "9"});
  options.gpus.has_device_order = options.gpus.has_cublas_workspace = true;
  const auto variables = [&](net::Job job, std::size_t index) {
    ReservedPort port(context);
    const net::Address address = port.address();
    const LocalTask task{
        .id = {.job = job, .index = index}, .name = "", .port = std::move(port), .listed = address};
    return variables_for(task, {}, options);
  };
  EXPECT_THAT(variables(net::Job::kChief, 0), ElementsAre("CUDA_VISIBLE_DEVICES=7"));
  EXPECT_THAT(variables(net::Job::kWorker, 0), ElementsAre("CUDA_VISIBLE_DEVICES=8"));
  EXPECT_THAT(variables(net::Job::kWorker, 1), ElementsAre("CUDA_VISIBLE_DEVICES=9"));
  EXPECT_THAT(variables(net::Job::kPs, 0), ElementsAre("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(variables(net::Job::kEvaluator, 0), ElementsAre("CUDA_VISIBLE_DEVICES="));
  options.chief = false;
  EXPECT_THAT(variables(net::Job::kWorker, 0), ElementsAre("CUDA_VISIBLE_DEVICES=7"));
}

}  // namespace
}  // namespace disttf::roles
