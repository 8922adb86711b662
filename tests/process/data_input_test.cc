// Damaged data, misbehaving mirrors, full disks: a sentence that names the file, exit code 3, and
// no incomplete file left behind.
#include <fstream>
#include <functional>
#include <iterator>
#include <ostream>
#include <regex>
#include <sstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

class DataInput : public ProcessTest {
 protected:
  // Returns a port of this machine that refuses connections.
  [[nodiscard]] std::string nowhere() const {
    return "--data_url=http://127.0.0.1:" + std::to_string(closed_.number()) + "/";
  }
  [[nodiscard]] fs::path directory() const { return scratch() / "data"; }
  [[nodiscard]] Words flags() const { return {"--data_dir=" + directory().string()}; }

  // Returns the files in the directory that do not belong to a data set.
  [[nodiscard]] std::vector<std::string> leavings() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory())) {
      names.push_back(entry.path().filename());
    }
    return leavings_among(names);
  }
  [[nodiscard]] static std::vector<std::string> leavings_among(std::vector<std::string> names) {
    // The lock file stays: removing it would let two processes lock two files of the same name.
    const std::regex lasting(
        "\\.download\\.lock|"
        "(digits-)?(train|t10k)-(images-idx3|labels-idx1)-ubyte(\\.gz|\\.verified)?");
    std::erase_if(names, [&](const std::string& name) { return std::regex_match(name, lasting); });
    return names;
  }

 private:
  const ReservedPort closed_;
};

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// ------------------------------------------------------------------------------- local files

struct Damage {
  const char* name;
  const char* file;
  std::string (*make)(const std::string& good_gz);
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.file; }

class DamagedFile : public DataInput, public ::testing::WithParamInterface<Damage> {
 protected:
  void SetUp() override {
    if (!has_mnist()) {
      GTEST_SKIP() << "needs the real MNIST in " << mnist_directory();
    }
    fs::create_directory(directory());
    for (const std::string& name : mnist_gz_names()) {
      if (!name.starts_with("t10k-labels")) {
        fs::create_symlink(fs::absolute(mnist_directory() / name), directory() / name);
      }
    }
    write_file(directory() / GetParam().file,
               GetParam().make(read_file(mnist_directory() / "t10k-labels-idx1-ubyte.gz")));
  }
};

TEST_P(DamagedFile, IsNamedAndNotUsed) {
  Process& task = run("download", Words{"download", nowhere()} + flags());
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, GetParam().file));
  EXPECT_THAT(leavings(), ::testing::IsEmpty());
}

TEST_P(DamagedFile, IsAnErrorForATaskThatWantsMnist) {
  const ClusterOnLoopback cluster;
  Process& task = run("worker", Words{"worker", "--task_index=0", "--dataset=mnist", nowhere()} +
                                    cluster.host_flags() + flags());
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, GetParam().file));
  EXPECT_TRUE(says(task, "--dataset mnist: t10k-labels-idx1-ubyte.gz is not in"));
  EXPECT_TRUE(says(task, "and cannot be downloaded; copy it there, name another directory with"));
}

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

const Damage kDamages[] = {
    {"TruncatedGzip", "t10k-labels-idx1-ubyte.gz",
     [](const std::string& gz) { return gz.substr(0, gz.size() / 2); }},
    {"CorruptGzip", "t10k-labels-idx1-ubyte.gz",
     [](const std::string& gz) { return flipped(gz, gz.size() / 2); }},
    {"WrongMagicOfGzip", "t10k-labels-idx1-ubyte.gz",
     [](const std::string& gz) { return flipped(gz, 0); }},
    {"OversizedGzip", "t10k-labels-idx1-ubyte.gz",
     [](const std::string& gz) { return gz + "more"; }},
    {"EmptyGzip", "t10k-labels-idx1-ubyte.gz", [](const std::string&) { return std::string(); }},
    {"PageSavedAsGzip", "t10k-labels-idx1-ubyte.gz",
     [](const std::string&) { return std::string("<html>Please log in</html>"); }},
    {"TruncatedIdx", "t10k-labels-idx1-ubyte",
     [](const std::string&) { return std::string("\0\0\x08\x01\0\0\x27\x10", 8); }},
    {"WrongMagicOfIdx", "t10k-labels-idx1-ubyte",
     [](const std::string&) { return std::string(10'008, 'x'); }},
    {"OversizedIdx", "t10k-labels-idx1-ubyte",
     [](const std::string&) { return std::string(1'000'000, '\0'); }},
};

INSTANTIATE_TEST_SUITE_P(Each, DamagedFile, ::testing::ValuesIn(kDamages),
                         [](const auto& each) { return each.param.name; });

TEST_F(DataInput, DamagedMnistIsReplacedByDigitsWithAWarning) {
  fs::create_directory(directory());
  write_file(directory() / "t10k-labels-idx1-ubyte.gz", "not a gzip file");
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--train_steps=2", nowhere()} + flags());
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "t10k-labels-idx1-ubyte.gz"));
  EXPECT_TRUE(says(job, "MNIST cannot be had, training on the built-in digits instead"));
  EXPECT_TRUE(says(job, "^Digits accuracy: "));
  EXPECT_EQ(count_of(job.standard_output(), "MNIST"), 0U) << "only MNIST has this name";
  EXPECT_THAT(leavings(), ::testing::IsEmpty());
}

TEST_F(DataInput, UnreachableMirrorsAreNamedEach) {
  const Words urls = {nowhere() + "," + "http://no-such-host.invalid/mnist"};
  Process& task = run("download", Words{"download"} + urls + flags());
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "http://127.0.0.1:[0-9]+/.*Connection refused"));
  EXPECT_TRUE(says(task, "http://no-such-host.invalid"));
}

// ------------------------------------------------------------------------------------- mirrors

class Mirror : public DataInput {
 protected:
  void SetUp() override {
    if (!has_mnist()) {
      GTEST_SKIP() << "needs the real MNIST in " << mnist_directory();
    }
  }
  // Returns the URL of a new test mirror in this mode.
  std::string mirror_url(const std::string& mode, const Words& more = {}) {
    Process& mirror = run_program(
        mirror_binary(),
        Words{"--dir", fs::absolute(mnist_directory()).string(), "--mode", mode} + more);
    EXPECT_TRUE(says(mirror, "^https?://"));
    return captured(mirror.standard_output(), "(https?://[^\n]*)");
  }
  Process& download_from(const std::string& mode, const Words& more = {}) {
    return run("download", Words{"download", "--data_url=" + mirror_url(mode)} + flags() + more);
  }
  void expect_whole_files() {
    for (const std::string& name : mnist_gz_names()) {
      EXPECT_EQ(fs::file_size(directory() / name), fs::file_size(mnist_directory() / name));
    }
    EXPECT_THAT(leavings(), ::testing::IsEmpty());
  }
  void expect_nothing_final() {
    for (const std::string& name : mnist_gz_names()) {
      EXPECT_FALSE(fs::exists(directory() / name)) << name;
    }
  }
};

TEST_F(Mirror, GoodOnePrintsTheLinesOfTheTutorials) {
  Process& task = download_from("good");
  EXPECT_TRUE(exits(task, kExitDone));
  EXPECT_TRUE(says(task, "Successfully downloaded train-images-idx3-ubyte.gz 9912422 bytes\\.$"));
  EXPECT_TRUE(says(task, "Extracting .*/data/t10k-labels-idx1-ubyte.gz$"));
  expect_whole_files();
}

// Uses the reduced OpenSSL of the executable (cmake/openssl_provider.cc).
TEST_F(Mirror, GoodOneIsBelievedOverTlsAndAnUnauthenticatedPeerIsNot) {
  const std::string known = (scratch() / "ca.pem").string();
  const std::string url = mirror_url("good", {"--ca-file", known});
  Process& task =
      run("download", Words{"download", "--data_url=" + url, "--ca_file=" + known} + flags());
  EXPECT_TRUE(exits(task, kExitDone));
  expect_whole_files();

  const std::string outsider =
      mirror_url("good", {"--ca-file", (scratch() / "other.pem").string()});
  fs::remove_all(directory());
  Process& refused =
      run("refused", Words{"download", "--data_url=" + outsider, "--ca_file=" + known} + flags());
  EXPECT_TRUE(exits(refused, kExitBadData));
  EXPECT_TRUE(says(refused, "certificate"));
  expect_nothing_final();
}

// The connection breaks after a million bytes each time; the file of ten million would only take
// longer.
TEST_F(Mirror, OneThatBreaksOffIsResumed) {
  fs::create_directory(directory());
  const std::string large = "train-images-idx3-ubyte.gz";
  fs::create_symlink(fs::absolute(mnist_directory() / large), directory() / large);
  Process& task = download_from("break");
  EXPECT_TRUE(exits(task, kExitDone));
  EXPECT_TRUE(says(task, "trying again from byte 1000000"));
  EXPECT_TRUE(says(task, "Successfully downloaded t10k-images-idx3-ubyte.gz 1648877 bytes\\.$"));
  expect_whole_files();
}

TEST_F(Mirror, OneThatServesAPageIsNotBelieved) {
  Process& task = download_from("html");
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "http://127.0.0.1:[0-9]+/train-images-idx3-ubyte.gz: "));
  expect_nothing_final();
  EXPECT_THAT(leavings(), ::testing::IsEmpty());
}

TEST_F(Mirror, OneThatStallsIsGivenUpInTime) {
  Process& task = download_from("stall", {"--download_timeout=2"});
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "train-images-idx3-ubyte.gz"));
  expect_nothing_final();
}

TEST_F(Mirror, OneThatRedirectsForEverIsLeft) {
  Process& task = download_from("redirect_loop");
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "http://127.0.0.1:[0-9]+/.*redirect"));
  expect_nothing_final();
}

TEST_F(Mirror, OneWithoutTheFilesIsLeft) {
  Process& task = download_from("404");
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "http://127.0.0.1:[0-9]+/train-images-idx3-ubyte.gz: .*404"));
  expect_nothing_final();
}

// A worker may need minutes to load its data; this does not count as disconnected.
TEST_F(Mirror, WorkerThatIsStillLoadingItsDataIsWaitedFor) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const Words quick = {"--worker_timeout=1", "--train_steps=3"};
  Process& ps = run_task(cluster, net::Job::kPs, 0, quick);
  Process& chief =
      run("worker 0", Words{"worker", "--task_index=0", "--dataset=digits", data_dir_flag()} +
                          cluster.host_flags() + quick);
  Process& worker =
      run("worker 1", Words{"worker", "--task_index=1", "--dataset=auto", "--download_timeout=4",
                            "--data_url=" + mirror_url("stall")} +
                          cluster.host_flags() + flags());
  EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
  EXPECT_TRUE(says(worker, "training on the built-in digits instead"));
}

// --------------------------------------------------------------------------------------- disks

// Runs disttf on a separate file system, which the test can fill up.
class Disk : public Mirror {
 protected:
  // Returns false and prints the reason if this user may not mount.
  bool can_mount() {
    Process& probe = run_program("/usr/bin/unshare",
                                 {"-m", "/bin/mount", "-t", "tmpfs", "tmpfs", scratch().string()});
    return probe.wait().exit_code == 0;
  }
  Process& download_onto(const std::string& mount_options) {
    const std::string url = mirror_url("good");
    fs::create_directory(directory());
    // `ls` runs inside, because files left behind disappear with the mount.
    return run_program(
        "/usr/bin/unshare",
        {"-m", "/bin/sh", "-c",
         "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && { \"$3\" download --data_url=\"$4\" "
         "--data_dir=\"$2\"; code=$?; ls -A \"$2\"; exit $code; }",
         "sh", mount_options, directory().string(), disttf_binary(), url});
  }
  static std::vector<std::string> files_listed_by(const Process& process) {
    std::istringstream lines(process.standard_output());
    return {std::istream_iterator<std::string>(lines), {}};
  }
};

TEST_F(Disk, FullOneIsToldAndLeftClean) {
  if (!can_mount()) {
    GTEST_SKIP() << "this user may not mount a file system";
  }
  Process& task = download_onto("size=2m");
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "train-images-idx3-ubyte.gz.*No space left on device"));
  const std::vector<std::string> files = files_listed_by(task);
  EXPECT_THAT(files, ::testing::Not(::testing::Contains("train-images-idx3-ubyte.gz")));
  EXPECT_THAT(leavings_among(files), ::testing::IsEmpty());
}

// The disk has room for the .gz but not for its contents, which are then used from memory.
TEST_F(Disk, FullOneAfterTheDownloadsIsNoError) {
  if (!can_mount()) {
    GTEST_SKIP() << "this user may not mount a file system";
  }
  Process& task = download_onto("size=20m");
  EXPECT_TRUE(exits(task, kExitDone));
  EXPECT_TRUE(says(task, "train-images-idx3-ubyte.*No space left on device"));
  const std::vector<std::string> files = files_listed_by(task);
  EXPECT_THAT(files, ::testing::Not(::testing::Contains("train-images-idx3-ubyte")));
  EXPECT_THAT(leavings_among(files), ::testing::IsEmpty());
}

TEST_F(Disk, ReadOnlyOneIsTold) {
  if (!can_mount()) {
    GTEST_SKIP() << "this user may not mount a file system";
  }
  Process& task = download_onto("ro");
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "/data.*Read-only file system"));
}

TEST_F(DataInput, DirectoryThatIsAFileIsTold) {
  write_file(directory(), "");
  Process& task = run("download", Words{"download", nowhere()} + flags());
  EXPECT_TRUE(exits(task, kExitBadData));
  EXPECT_TRUE(says(task, "/data"));
}

// Another process writes to the files of the data set while a run trains on them. Each trainer has
// verified its own copy, so the run continues with the weights of an undisturbed run.

namespace fs = std::filesystem;

class DataChanges : public ProcessTest {
 protected:
  void SetUp() override { fs::create_directory(data_); }
  // A trainer that a signal ends is not restarted.
  Process& launch(const std::string& name, const Words& more = {}) {
    return run(name, Words{"launch", "--ps=1", "--workers=2", "--train_steps=60", "--log_every=1",
                           "--print_weights_hash", "--max_restarts=0", "--dataset=digits",
                           "--data_dir=" + data_.string()} +
                         more);
  }
  [[nodiscard]] std::vector<fs::path> data_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(data_)) {
      if (entry.path().filename().string().ends_with("-ubyte")) {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  // Applies `change` to each file in the middle of a run.
  void expect_undisturbed_by(const std::function<void(const fs::path&)>& change) {
    Process& undisturbed = launch("undisturbed");
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    ASSERT_EQ(data_files().size(), 4U);
    Process& disturbed = launch("disturbed", {"--debug_delay_ms=20"});
    for (const char* worker : {"worker:0", "worker:1"}) {
      ASSERT_TRUE(says(disturbed, std::string(worker) + "\\] .*training step 3 done"));
    }
    for (const fs::path& file : data_files()) {
      change(file);
    }
    ASSERT_EQ(count_of(disturbed.standard_error(), "training step 60 done"), 0U)
        << "the run was over before the files were changed";
    ASSERT_TRUE(exits(disturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(disturbed), weights_hash_in(undisturbed));
    EXPECT_EQ(accuracy_of(disturbed), accuracy_of(undisturbed));
  }
  static std::string accuracy_of(const Process& process) {
    return captured(process.standard_output(), "Digits accuracy: (0\\.[0-9]{4})\n");
  }

  const fs::path data_ = scratch() / "data";
};

TEST_F(DataChanges, CutShortInPlace) {
  expect_undisturbed_by([](const fs::path& file) { fs::resize_file(file, 0); });
}

TEST_F(DataChanges, OverwrittenInPlace) {
  expect_undisturbed_by([](const fs::path& file) {
    const std::string other(fs::file_size(file), '\1');
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(stream.write(other.data(), static_cast<std::streamsize>(other.size())).flush());
  });
}

TEST_F(DataChanges, ReplacedByAnotherFile) {
  expect_undisturbed_by([](const fs::path& file) {
    const fs::path other = file.string() + ".new";
    std::ofstream(other) << "another data set";
    fs::rename(other, file);
  });
}

}  // namespace
}  // namespace disttf::test_process
