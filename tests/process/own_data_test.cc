// A user's own table trains like MNIST: in several processes, bit-identical, and with one sentence
// where it cannot.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/data/own/arrays_on_disk.h"
#include "tests/data/own/images_on_disk.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class OwnTable : public ProcessTest {
 protected:
  // Writes points on a plane in three clusters that are not linearly separable.
  std::string put(const std::string& name, std::size_t rows) {
    const std::string path = (scratch() / name).string();
    std::ofstream file(path);
    file << "x,y,heap\n";
    for (std::size_t row = 0; row < rows; ++row) {
      // Walks around a circle by an angle that does not repeat.
      const double angle = 2.399963 * static_cast<double>(row);
      const std::size_t heap = row % 3;
      const double radius = static_cast<double>(heap) * 10 + 0.5;
      file << radius * std::cos(angle) << "," << 1000 + radius * std::sin(angle) << ","
           << (heap == 0   ? "near"
               : heap == 1 ? "middle"
                           : "far")
           << "\n";
    }
    return path;
  }
  [[nodiscard]] Words flags(const std::string& path) const {
    return {"--data=" + path,      "--data_dir=" + (scratch() / "data").string(),
            "--label_column=heap", "--train_steps=300",
            "--batch_size=20",     "--hidden_units=16"};
  }
};

TEST_F(OwnTable, TrainsToItsClasses) {
  Process& job = run(
      "launch", Words{"launch", "--workers=2", "--print_classes"} + flags(put("heaps.csv", 600)));
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(
      says(job, "Converting .*heaps.csv: 2 columns of numbers, the label is in column heap"));
  EXPECT_TRUE(says(job, "heaps accuracy: (1.0000|0.9[0-9]+)"));
  EXPECT_TRUE(says(job, "middle"));
}

TEST_F(OwnTable, IsBitIdenticalForAnyNumberOfPs) {
  const std::string path = put("heaps.csv", 200);
  std::string first;
  for (const char* const ps : {"--ps=1", "--ps=3"}) {
    for (const char* const transport : {"--transport=tcp", "--transport=auto"}) {
      Process& job =
          run("launch",
              Words{"launch", "--workers=2", ps, transport, "--print_weights_hash"} + flags(path));
      ASSERT_TRUE(exits(job, kExitDone));
      const std::string result = job.standard_output();
      const std::string hash = result.substr(result.find("SHA-256: "), 73);
      first = first.empty() ? hash : first;
      EXPECT_EQ(hash, first);
    }
  }
}

// z = 3 x - y + 100; a model that only guesses has a mean error of 25.
TEST_F(OwnTable, WithNumbersForLabelsTrainsToComeNear) {
  const std::string path = (scratch() / "plane.csv").string();
  std::ofstream file(path);
  file << "x,y,z\n";
  for (int row = 0; row < 600; ++row) {
    const int x = row * 7 % 31 - 15;
    const int y = row * 11 % 37;
    file << x << "," << y << "," << 3 * x - y + 100 << "\n";
  }
  file.close();
  std::string first;
  for (const char* const ps : {"--ps=1", "--ps=2"}) {
    Process& job =
        run("launch", Words{"launch", "--workers=2", ps, "--data=" + path,
                            "--data_dir=" + (scratch() / "data").string(), "--label_type=number",
                            "--train_steps=500", "--print_weights_hash", "--hidden_units=8"});
    ASSERT_TRUE(exits(job, kExitDone));
    EXPECT_TRUE(says(job, "validation mean squared error = [0-9.]+"));
    EXPECT_TRUE(
        says(job, "plane mean absolute error: [0-3][.][0-9]+, mean squared error: [0-9.]+"));
    const std::string result = job.standard_output();
    const std::string hash = result.substr(result.find("SHA-256: "), 73);
    first = first.empty() ? hash : first;
    EXPECT_EQ(hash, first);
  }
}

// Clusters on the corners of a square; those on a diagonal are one class.
TEST_F(OwnTable, MayBeSparseText) {
  std::filesystem::create_directory(scratch() / "corners");
  for (const char* const name : {"corners/train.svm", "corners/test.svm"}) {
    std::ofstream file(scratch() / name);
    for (int row = 0; row < 200; ++row) {
      const bool is_right = row % 2 == 1;
      const bool is_high = row % 4 >= 2;
      file << (is_right == is_high ? "+1" : "-1") << (is_right ? " 2:1" : "")
           << (is_high ? " 5:1" : "") << "\n";
    }
  }
  const std::string path = (scratch() / "corners").string();
  Process& job = run("launch", Words{"launch", "--workers=2", "--data=" + path,
                                     "--data_dir=" + (scratch() / "data").string(),
                                     "--train_steps=300", "--batch_size=20", "--hidden_units=16"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(
      says(job, "Converting .*corners: 5 columns of numbers, the label is in column label"));
  EXPECT_TRUE(says(job, "corners accuracy: 1.0000"));
  Process& text =
      run("data", Words{"data", "inspect", path, "--data_dir=" + (scratch() / "data").string()});
  ASSERT_TRUE(exits(text, kExitDone));
  EXPECT_THAT(text.standard_output(),
              testing::HasSubstr("corners: 400 rows of 5 numbers, 2 classes in column label\n"));
}

// An image in which one quarter is lit, under some noise; the quarter is its class.
std::vector<std::uint8_t> quarter_lit(int quarter, int number, int channels) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      const bool is_lit = (y / 4) * 2 + x / 4 == quarter;
      const int noise = (number * 31 + y * 17 + x * 7) % 60;
      pixels.insert(pixels.end(), static_cast<std::size_t>(channels),
                    static_cast<std::uint8_t>(is_lit ? 255 - noise : noise));
    }
  }
  return pixels;
}

TEST_F(OwnTable, MayBeImagesInAnNpz) {
  const std::string path = (scratch() / "quarters.npz").string();
  {
    data::test::NpzWriter archive(path);
    for (const std::string part : {"train", "test"}) {
      std::vector<std::uint8_t> images;
      std::vector<std::uint8_t> labels;
      for (int i = 0; i < 200; ++i) {
        const auto image = quarter_lit(i % 4, i, 1);
        images.insert(images.end(), image.begin(), image.end());
        labels.push_back(static_cast<std::uint8_t>(i % 4));
      }
      archive.add("x_" + part + ".npy", data::test::npy("|u1", "(200, 8, 8)", images), true);
      archive.add("y_" + part + ".npy", data::test::npy("|u1", "(200,)", labels), true);
    }
  }
  const std::string where = "--data_dir=" + (scratch() / "data").string();
  Process& job = run("launch", Words{"launch", "--workers=2", "--data=" + path, where,
                                     "--train_steps=200", "--batch_size=20", "--hidden_units=16"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "Converting .*quarters.npz: images of 8x8x1"));
  EXPECT_TRUE(says(job, "quarters accuracy: (1.0000|0.9[0-9]+)"));
  Process& text = run("data", Words{"data", "inspect", path, where});
  ASSERT_TRUE(exits(text, kExitDone));
  EXPECT_THAT(text.standard_output(),
              testing::HasSubstr("quarters: 400 images of 8x8x1, 4 classes\n"
                                 "180 to train on, 20 for validation, 200 for the test\n"));
  EXPECT_THAT(text.standard_output(), testing::HasSubstr("██"));
}

TEST_F(OwnTable, MayBeAFolderOfImages) {
  const std::vector<std::string> classes = {"north west", "north east", "south west", "south east"};
  for (int i = 0; i < 200; ++i) {
    const auto folder = scratch() / "corners" / classes.at(static_cast<std::size_t>(i % 4));
    std::filesystem::create_directories(folder);
    const bool is_jpeg = i % 8 >= 4;
    const auto pixels = quarter_lit(i % 4, i, is_jpeg ? 3 : 1);
    const auto bytes = is_jpeg ? data::test::jpeg(8, 8, {}, pixels)
                               : data::test::png(8, 8, PNG_FORMAT_GRAY, pixels);
    std::ofstream file(folder / (std::to_string(i) + (is_jpeg ? ".jpg" : ".png")),
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  const std::string path = (scratch() / "corners").string();
  const std::string where = "--data_dir=" + (scratch() / "data").string();
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--print_classes", "--data=" + path, where,
                          "--train_steps=200", "--batch_size=20", "--hidden_units=16"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "Converting .*corners: images of 8x8x3"));
  EXPECT_TRUE(says(job, "corners accuracy: (1.0000|0.9[0-9]+)"));
  EXPECT_TRUE(says(job, "south east"));
  Process& json = run("data", Words{"data", "inspect", path, where, "--json"});
  ASSERT_TRUE(exits(json, kExitDone));
  EXPECT_THAT(json.standard_output(), testing::HasSubstr("\"name\": \"south east\""));
}

// The name of a table does not select a data set.
TEST_F(OwnTable, MayBeCalledAsTheBuiltInDigitsAre) {
  Process& job = run("launch", Words{"launch", "--workers=2"} + flags(put("Digits.csv", 200)));
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "Digits accuracy: "));
}

TEST_F(OwnTable, WithClassesInAnyBytesHasItsMetrics) {
  const std::string path = (scratch() / "cities.csv").string();
  std::ofstream file(path);
  for (int row = 0; row < 200; ++row) {
    file << row % 2 << "," << (row % 2 == 0 ? "M\xFCnchen" : "K\xF6ln") << "\n";
  }
  file.close();
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--data=" + path,
                          "--data_dir=" + (scratch() / "data").string(), "--train_steps=20",
                          "--hidden_units=4", "--metrics_file=" + (scratch() / "m").string()});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "cities accuracy: "));
}

// A table like one that pandas writes without column names, in Latin-1, after a byte order mark.
// The findings are logged once for the run, and `predict` accepts the same file.
TEST_F(OwnTable, IsReadByPredictAsTrainingHasReadIt) {
  const std::string path = (scratch() / "frame.csv").string();
  std::ofstream file(path);
  file << "\xEF\xBB\xBF"
       << "0,1,label\r\n";
  for (int row = 0; row < 200; ++row) {
    file << row % 2 * 9 + row % 3 << "," << row % 7 << ","
         << (row % 2 == 0 ? "f\xFCr" : "\"f\xF6r\tx\"") << "\r\n";
  }
  file.close();
  const std::string run_directory = (scratch() / "run").string();
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--data=" + path,
                          "--data_dir=" + (scratch() / "data").string(), "--train_steps=200",
                          "--hidden_units=8", "--train_dir=" + run_directory});
  ASSERT_TRUE(exits(job, kExitDone));
  const std::string log = job.standard_error();
  const std::string warning = "is not UTF-8; such labels are read as Windows-1252";
  const std::size_t first = log.find(warning);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos) << "must be logged once for all tasks";
  Process& asked = run("predict", Words{"predict", run_directory, path, "--json"});
  ASSERT_TRUE(exits(asked, kExitDone));
  EXPECT_THAT(asked.standard_output(), testing::HasSubstr("\"expected\":\"f\xC3\xB6r\\tx\""));
  EXPECT_THAT(asked.standard_output(), testing::HasSubstr("\"accuracy\":1"));
}

TEST_F(OwnTable, RefusesALossOfTheOtherKindOfLabels) {
  Process& job = run("launch", Words{"launch", "--restart=never", "--loss=mean_squared_error"} +
                                   flags(put("heaps.csv", 100)));
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--loss: mean_squared_error is not allowed where labels are classes"));
}

TEST_F(OwnTable, ThatIsAnotherOneThanTheChiefsIsRefused) {
  const ClusterOnLoopback cluster{{.ps = 1, .workers = 2}};
  const std::string path = put("heaps.csv", 200);
  std::filesystem::create_directory(scratch() / "elsewhere");
  const std::string other = put("elsewhere/heaps.csv", 300);
  const Words lists = {"--ps_hosts=" + cluster.address(net::Job::kPs, 0),
                       "--worker_hosts=" + cluster.address(net::Job::kWorker, 0) + "," +
                           cluster.address(net::Job::kWorker, 1),
                       "--worker_timeout=1", "--peer_timeout=1"};
  Process& ps = run("ps", Words{"ps", "--task_index=0"} + lists);
  Process& chief = run("chief", Words{"worker", "--task_index=0"} + flags(path) + lists);
  Process& worker = run("worker", Words{"worker", "--task_index=1"} + flags(other) + lists);
  EXPECT_TRUE(exits(worker, kExitBadData));
  EXPECT_TRUE(says(
      worker, "--data: the chief trains on heaps .SHA-256 [0-9a-f]{12}., this task has heaps"));
  EXPECT_TRUE(all_exit({&ps, &chief}, kExitLostPeers));
}

TEST_F(OwnTable, ThatCannotBeReadIsToldInASentence) {
  const std::string path = put("heaps.csv", 50);
  std::ofstream(path, std::ios::app) << "1,two,near\n";
  Process& job = run("launch", Words{"launch", "--restart=never"} + flags(path));
  EXPECT_TRUE(exits(job, kExitBadData));
  EXPECT_TRUE(says(job, "heaps.csv, line 52, column 2 .y.: \"two\" is not a number of 32 bits"));
}

TEST_F(OwnTable, IsShownByInspect) {
  const std::string path = put("heaps.csv", 60);
  const Words where = {"--data_dir=" + (scratch() / "data").string()};
  Process& text = run("data", Words{"data", "inspect", path} + where);
  ASSERT_TRUE(exits(text, kExitDone));
  EXPECT_THAT(text.standard_output(),
              testing::HasSubstr("heaps: 60 rows of 2 numbers, 3 classes in column heap\n"
                                 "48 to train on, 6 for validation, 6 for the test\n"));
  Process& json = run("data json", Words{"data", "inspect", path, "--json"} + where);
  ASSERT_TRUE(exits(json, kExitDone));
  EXPECT_THAT(json.standard_output(), testing::HasSubstr("\"label_column\": \"heap\""));
}

}  // namespace
}  // namespace disttf::test_process
