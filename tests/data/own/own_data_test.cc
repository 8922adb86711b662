// A user's files as a data set: parts, classes, and when they are converted again.
#include "data/own/own_data.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <vector>

#include "math/random.h"
#include "tests/data/own/arrays_on_disk.h"
#include "tests/data/own/images_on_disk.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OwnDataTest : public testing::Test {
 protected:
  std::filesystem::path put(const std::string& name, std::string_view text) {
    const auto path = scratch_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    test::write(path, test::bytes_of(text));
    return path;
  }
  // Returns `count` rows: a running number, a constant, and two alternating classes.
  static std::string rows(int count, int first = 0) {
    std::string text = "n,same,label\n";
    for (int row = first; row < first + count; ++row) {
      text += std::to_string(row) + ",2," + (row % 2 == 0 ? "even" : "odd") + "\n";
    }
    return text;
  }
  OwnDataHooks hooks() {
    OwnDataHooks hooks;
    hooks.cache_directory = scratch_.path() / "cache";
    hooks.purpose = static_cast<std::uint32_t>(math::Purpose::kHoldOut);
    hooks.random_bits = &math::random_bits;
    hooks.threads = 2;
    hooks.on_message = [this](const std::string& sentence) { said_.push_back(sentence); };
    return hooks;
  }
  Dataset open(const OwnDataOptions& options) { return open_own_data(options, hooks()).dataset; }
  std::string refusal(const OwnDataOptions& options) {
    return test::refusal_of([&] { static_cast<void>(open(options)); }, scratch_.path());
  }

  std::vector<std::string> names_in_cache() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path() / "cache")) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  test::ScratchDirectory scratch_;
  std::vector<std::string> said_;
};

TEST_F(OwnDataTest, OfOneFileIsSharedOut) {
  const Dataset dataset = open({.path = put("numbers.csv", rows(200))});
  EXPECT_EQ(dataset.name, "numbers");
  EXPECT_EQ(dataset.shape, (ImageShape{.height = 1, .width = 1, .channels = 2}));
  EXPECT_EQ(dataset.classes, 2U);
  EXPECT_THAT(dataset.class_names, ElementsAre("even", "odd"));
  EXPECT_EQ(dataset.train.labels.size(), 160U);
  EXPECT_EQ(dataset.validation.labels.size(), 20U);
  EXPECT_EQ(dataset.test.labels.size(), 20U);
  std::vector<int> seen(200);
  for (const Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
    ASSERT_EQ(split->numbers.size(), split->labels.size() * 2);
    for (std::size_t row = 0; row < split->labels.size(); ++row) {
      const int number = static_cast<int>(split->numbers[2 * row]);
      ++seen.at(static_cast<std::size_t>(number));
      EXPECT_EQ(split->numbers[2 * row + 1], 2);
      EXPECT_EQ(split->labels[row], number % 2);
    }
  }
  EXPECT_THAT(seen, testing::Each(1));
}

TEST_F(OwnDataTest, HasMeansAndScalesOfWhatIsTrainedOn) {
  put("d/train.csv", "a,b,label\n1,5,x\n3,5,y\n");
  put("d/validation.csv", "a,b,label\n100,7,x\n");
  put("d/test.csv", "a,b,label\n100,7,x\n");
  const Dataset dataset = open({.path = scratch_.path() / "d"});
  EXPECT_THAT(dataset.means, ElementsAre(2, 5));
  EXPECT_THAT(dataset.scales, ElementsAre(1, 1)) << "a constant column becomes zeros";
}

TEST_F(OwnDataTest, OfAFolderHasThePartsOfItsFiles) {
  put("d/train.csv", rows(40));
  put("d/test.tsv", "n\tsame\tlabel\n7\t2\todd\n");
  const Dataset dataset = open({.path = scratch_.path() / "d"});
  EXPECT_EQ(dataset.name, "d");
  EXPECT_EQ(dataset.train.labels.size(), 36U);
  EXPECT_EQ(dataset.validation.labels.size(), 4U) << "drawn from train's rows";
  EXPECT_THAT(dataset.test.numbers, ElementsAre(7, 2));
}

TEST_F(OwnDataTest, OrdersClassesThatAreNumbersByValue) {
  std::string text = "a,label\n";
  for (const char* const label : {"10", "9", "-1"}) {
    for (int row = 0; row < 20; ++row) {
      text += "1," + std::string(label) + "\n";
    }
  }
  EXPECT_THAT(open({.path = put("t.csv", text)}).class_names, ElementsAre("-1", "9", "10"));
}

TEST_F(OwnDataTest, MayHaveLabelsThatAreNumbers) {
  std::string text = "a,label\n";
  for (int row = 0; row < 100; ++row) {
    text += "1," + std::to_string(row) + ".5\n";
  }
  const auto path = put("t.csv", text);
  const Dataset dataset = open({.path = path, .label_is_number = true});
  EXPECT_EQ(dataset.classes, 0U);
  EXPECT_EQ(dataset.train.rows(), 80U);
  EXPECT_EQ(dataset.train.targets.size(), 80U);
  double sum = 0;
  for (const Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
    for (const float target : split->targets) {
      sum += static_cast<double>(target);
    }
  }
  EXPECT_EQ(sum, 5000);
  double mean = 0;
  for (const float target : dataset.train.targets) {
    mean += static_cast<double>(target) / 80;
  }
  EXPECT_NEAR(dataset.target_mean, mean, 1e-4);
  EXPECT_NEAR(dataset.target_scale, 1 / 28.9, 0.002);
}

TEST_F(OwnDataTest, SaysThatNumbersWereTakenForClasses) {
  std::string text = "a,label\n";
  for (int row = 0; row < 100; ++row) {
    text += "1," + std::to_string(row) + "\n";
  }
  const Dataset dataset = open({.path = put("t.csv", text)});
  EXPECT_EQ(dataset.classes, 100U);
  EXPECT_THAT(
      dataset.findings,
      testing::Contains(HasSubstr("The labels are 100 different numbers, used as classes")));
}

TEST_F(OwnDataTest, OfSparseFilesHasTheColumnsOfAll) {
  std::string train;
  for (int row = 0; row < 40; ++row) {
    train += row % 2 == 0 ? "+1 1:1\n" : "-1 2:3\n";
  }
  put("d/train.svm", train);
  put("d/test.libsvm", "1 3:5\n");
  const Dataset dataset = open({.path = scratch_.path() / "d"});
  EXPECT_EQ(dataset.shape.size(), 3U);
  EXPECT_THAT(dataset.class_names, ElementsAre("-1", "1"));
  EXPECT_EQ(dataset.train.rows(), 36U);
  EXPECT_EQ(dataset.train.labels[0], 1);
  EXPECT_THAT(dataset.train.numbers.first(3), ElementsAre(1, 0, 0));
  EXPECT_THAT(dataset.test.numbers, ElementsAre(0, 0, 5));
}

TEST_F(OwnDataTest, OfASparseFileHasNoColumnsToChoose) {
  const auto path = put("t.svm", "1 1:1\n");
  EXPECT_EQ(refusal({.path = path, .label_column = "1"}),
            "--label_column: t.svm is sparse text, in which the label is the first word of a line; "
            "it is allowed with the other tables");
  EXPECT_EQ(refusal({.path = path, .ignored_columns = {"1"}}),
            "--ignore_columns: t.svm is sparse text, in which the label is the first word of a "
            "line; it is allowed with the other tables");
}

TEST_F(OwnDataTest, KnowsEndingsInAnyCase) {
  EXPECT_EQ(open({.path = put("T.CSV", rows(60))}).train.rows(), 48U);
  put("d/Train.Csv", rows(40));
  put("d/TEST.TSV", "n\tsame\tlabel\n7\t2\todd\n");
  EXPECT_THAT(open({.path = scratch_.path() / "d"}).test.numbers, ElementsAre(7, 2));
}

TEST_F(OwnDataTest, IsConvertedOnce) {
  const auto path = put("t.csv", rows(60));
  const std::string checksum = open({.path = path}).checksum;
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Converting ")));
  EXPECT_EQ(open({.path = path}).checksum, checksum);
  EXPECT_THAT(said_.back(), HasSubstr("Using the converted form of "));
  EXPECT_NE(open({.path = path, .held_out = {.validation = 0.2, .test = 0.2}}).checksum, checksum);
  EXPECT_THAT(said_.back(), HasSubstr("Converting "));
}

TEST_F(OwnDataTest, IsConvertedAnewWhenTheFileHasChanged) {
  const auto path = put("t.csv", rows(30, 10));
  const std::string checksum = open({.path = path}).checksum;
  put("t.csv", rows(30, 40));  // the same number of bytes
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_NE(open({.path = path}).checksum, checksum);
}

TEST_F(OwnDataTest, OfTheSameBytesIsTheSameWhereverItLies) {
  const auto first = put("one/t.csv", rows(60));
  const auto second = put("two/t.csv", rows(60));
  EXPECT_EQ(open({.path = first}).checksum, open({.path = second}).checksum);
}

TEST_F(OwnDataTest, StaysWhereItIsMappedWhileItIsConvertedAnew) {
  const auto path = put("t.csv", rows(60));
  const Dataset before = open({.path = path});
  const std::vector<float> numbers(before.train.numbers.begin(), before.train.numbers.end());
  put("t.csv", rows(60, 40));
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  static_cast<void>(open({.path = path}));
  EXPECT_TRUE(std::ranges::equal(before.train.numbers, numbers));
}

TEST_F(OwnDataTest, LeavesNothingBehindWhereItFails) {
  const auto path = put("t.csv", rows(60) + "1,2,\n");
  EXPECT_EQ(refusal({.path = path}), "t.csv, line 62, column 3 (label): the label is missing");
  EXPECT_THAT(names_in_cache(), IsEmpty());
}

TEST_F(OwnDataTest, RemovesWhatAKilledConverterHasLeft) {
  const auto path = put("t.csv", rows(60));
  const auto directory = convert_own_data({.path = path}, hooks()).directory;
  std::filesystem::remove_all(directory);
  const auto left = directory.string() + ".disttf-abcdef";
  std::filesystem::create_directory(left);
  static_cast<void>(open({.path = path}));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(directory));
}

TEST_F(OwnDataTest, IsMadeOnceWhereSeveralTasksWantIt) {
  const auto path = put("t.csv", rows(5000));
  const int done = test::in_children(4, [&] {
    return open_own_data({.path = path}, hooks()).dataset.train.labels.size() == 4000;
  });
  EXPECT_EQ(done, 4);
  EXPECT_THAT(names_in_cache(), testing::SizeIs(1));
}

TEST_F(OwnDataTest, IsRefusedWhereItsFilesWereChanged) {
  const auto path = put("t.csv", rows(60));
  const auto directory = convert_own_data({.path = path}, hooks()).directory;
  auto bytes = test::read(directory / "train.examples");
  bytes[5] ^= 1U;
  test::write(directory / "train.examples", bytes);
  EXPECT_THAT(refusal({.path = path}),
              HasSubstr("train.examples: its SHA-256 is not the one in its index; remove the "
                        "folder to have it created again"));
  bytes.pop_back();
  test::write(directory / "train.examples", bytes);
  EXPECT_THAT(refusal({.path = path}), HasSubstr("train.examples: 383 bytes where its index says"));
}

// A changed mean would train to other weights under the same checksum.
TEST_F(OwnDataTest, IsMadeAgainWhereItsIndexWasChanged) {
  const auto path = put("t.csv", rows(60));
  const auto directory = convert_own_data({.path = path}, hooks()).directory;
  const auto bytes = test::read(directory / "index.json");
  std::string text(bytes.begin(), bytes.end());
  const std::size_t at = text.find("\"mean\": ");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 8, "1");
  test::write(directory / "index.json", test::bytes_of(text));
  said_.clear();
  static_cast<void>(open({.path = path}));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Converting ")));
}

TEST_F(OwnDataTest, SeesAColumnThatCountsRowsThoughSomeAreHeldOut) {
  const auto index = convert_own_data({.path = put("t.csv", rows(60))}, hooks()).index;
  EXPECT_TRUE(index.columns[0].counts_rows);
  EXPECT_FALSE(index.columns[1].counts_rows);
}

TEST_F(OwnDataTest, RefusesLabelsThatAreAllTheSame) {
  std::string text = "a,label\n";
  for (int row = 0; row < 40; ++row) {
    text += "1,x\n";
  }
  EXPECT_EQ(refusal({.path = put("t.csv", text)}),
            "--data: t.csv: all labels in column label are \"x\"; two classes at least are needed");
}

TEST_F(OwnDataTest, IsMadeAgainWhereItsIndexIsNone) {
  const auto path = put("t.csv", rows(60));
  const auto directory = convert_own_data({.path = path}, hooks()).directory;
  for (const char* const index : {"", "[1]", "{\"version\": 1}", "{\"version\": 99}"}) {
    test::write(directory / "index.json", test::bytes_of(index));
    said_.clear();
    EXPECT_EQ(open({.path = path}).train.labels.size(), 48U);
    EXPECT_THAT(said_, ElementsAre(HasSubstr("Converting "))) << index;
  }
}

TEST_F(OwnDataTest, RefusesWhatIsNoData) {
  EXPECT_EQ(refusal({.path = scratch_.path() / "absent.csv"}),
            "--data: cannot read absent.csv: No such file or directory");
  EXPECT_EQ(
      refusal({.path = put("t.pdf", "x")}),
      "--data: t.pdf ends with none of .csv, .tsv, .txt, .libsvm, .svm, .svmlight and .npz, and "
      "is not a folder");
  std::filesystem::create_directory(scratch_.path() / "empty");
  EXPECT_EQ(
      refusal({.path = scratch_.path() / "empty"}),
      "--data: empty has no table called train (.csv, .tsv, .txt, .libsvm, .svm, .svmlight), no "
      "arrays called x_train and y_train (.npy), no folders of images and no IDX files");
  put("two/train.csv", rows(40));
  put("two/train.tsv", rows(40));
  EXPECT_EQ(refusal({.path = scratch_.path() / "two"}),
            "--data: two has both train.csv and train.tsv; one of them is allowed");
  put("other/train.csv", rows(40));
  put("other/test.csv", "m,same,label\n1,2,odd\n");
  EXPECT_EQ(refusal({.path = scratch_.path() / "other"}),
            "other/test.csv: its columns are not those of other/train.csv (2 of numbers and the "
            "label label, there 2 and label)");
}

TEST_F(OwnDataTest, RefusesTooFewRowsAndTooManyClasses) {
  EXPECT_EQ(refusal({.path = put("few.csv", rows(60)), .held_out = {.validation = 0, .test = 0.1}}),
            "--data: few.csv has 60 rows, of which none is for validation; more rows, or larger "
            "shares in --hold_out, are needed");
  std::string text = "a,label\n";
  for (int row = 0; row < 300; ++row) {
    text += "1," + std::to_string(row) + "\n";
  }
  EXPECT_EQ(refusal({.path = put("many.csv", text)}),
            "many.csv: column \"label\" has more than 256 values, the limit for classes. "
            "--label_column selects another column; --label_type number predicts numbers");
}

TEST_F(OwnDataTest, StopsWhereProgressThrows) {
  const auto path = put("t.csv", rows(60));
  OwnDataHooks stopped = hooks();
  stopped.on_progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("stopped"); };
  EXPECT_THROW(static_cast<void>(convert_own_data({.path = path}, stopped)), std::runtime_error);
  EXPECT_THAT(names_in_cache(), IsEmpty());
}

// Changed files ---------------------------------------------------------------------------------

class ChangedData : public OwnDataTest {
 protected:
  // Has the effect of `touch -d @1`: only ctime and the inode still show a change of the bytes.
  static void date(const std::filesystem::path& path) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type{});
  }
  static struct stat status_of(const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status;
  }
  // Overwrites the file with the same number of bytes until the kernel's clock, which ticks every
  // few milliseconds, gives it another ctime.
  void overwrite(const std::filesystem::path& path, const test::Bytes& bytes) {
    const struct stat before = status_of(path);
    struct stat now = before;
    while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
      test::write(path, bytes);
      date(path);
      now = status_of(path);
    }
    ASSERT_EQ(now.st_ino, before.st_ino);
    ASSERT_EQ(now.st_size, before.st_size);
    ASSERT_EQ(now.st_mtim.tv_sec, before.st_mtim.tv_sec);
  }
  static std::string heaps(bool is_swapped) {
    std::string text = "x,label\n";
    for (int row = 0; row < 60; ++row) {
      text += std::to_string(row % 5) + "," + ((row % 2 == 0) == is_swapped ? "a" : "b") + "\n";
    }
    return text;
  }
};

TEST_F(ChangedData, InPlaceWithItsSizeAndDateIsConvertedAnew) {
  const auto path = put("t.csv", heaps(false));
  date(path);
  const std::string checksum = open({.path = path}).checksum;
  overwrite(path, test::bytes_of(heaps(true)));
  EXPECT_NE(open({.path = path}).checksum, checksum);
}

TEST_F(ChangedData, RenamedOverWithItsSizeAndDateIsConvertedAnew) {
  const auto path = put("t.csv", heaps(false));
  date(path);
  const std::string checksum = open({.path = path}).checksum;
  const auto other = put("other.csv", heaps(true));
  date(other);
  std::filesystem::rename(other, path);
  EXPECT_NE(open({.path = path}).checksum, checksum);
}

TEST_F(ChangedData, OfAnImageInAFolderIsConvertedAnew) {
  const auto image = [](std::uint8_t shade) {
    return test::png(4, 4, PNG_FORMAT_GRAY, test::Bytes(16, shade));
  };
  for (int i = 0; i < 40; ++i) {
    const auto folder = scratch_.path() / "set" / (i % 2 == 0 ? "a" : "b");
    std::filesystem::create_directories(folder);
    test::write(folder / (std::to_string(i) + ".png"), image(static_cast<std::uint8_t>(i)));
  }
  const auto path = scratch_.path() / "set" / "a" / "2.png";
  ASSERT_EQ(image(7).size(), image(2).size());
  date(path);
  const std::string checksum = open({.path = scratch_.path() / "set"}).checksum;
  overwrite(path, image(7));
  EXPECT_NE(open({.path = scratch_.path() / "set"}).checksum, checksum);
}

TEST_F(ChangedData, OfArraysInAnArchiveIsConvertedAnew) {
  const auto path = scratch_.path() / "a.npz";
  const auto archive = [&](std::uint8_t shade) {
    test::NpzWriter(path)
        .add("x.npy", test::npy("|u1", "(40, 2, 2)", test::Bytes(160, shade)))
        .add("y.npy", [] {
          test::Bytes labels;
          for (std::uint8_t i = 0; i < 40; ++i) labels.push_back(i % 2);
          return test::npy("|u1", "(40,)", labels);
        }());
    return test::read(path);
  };
  const test::Bytes other = archive(9);
  const test::Bytes first = archive(3);
  ASSERT_EQ(other.size(), first.size());
  date(path);
  const std::string checksum = open({.path = path}).checksum;
  overwrite(path, other);
  EXPECT_NE(open({.path = path}).checksum, checksum);
}

TEST_F(ChangedData, ColumnsThatAreLeftOutAreToldApart) {
  const auto path = put(
      "t.csv", "a b,a,b,label\n" + [] {
        std::string text;
        for (int row = 0; row < 60; ++row) text += "1,2,3," + std::to_string(row % 2) + "\n";
        return text;
      }());
  EXPECT_EQ(open({.path = path, .ignored_columns = {"a b"}}).column_names.size(), 2U);
  EXPECT_EQ(open({.path = path, .ignored_columns = {"a", "b"}}).column_names.size(), 1U);
}

// Labels ------------------------------------------------------------------------------------------

TEST_F(OwnDataTest, HasOneClassForAllWaysToWriteANumber) {
  std::string train = "x,label\n";
  std::string test = "x,label\n";
  const std::vector<std::string> ways = {"1", "1.0", "+1", "1e0", "\"1\"", "10e-1", "1."};
  for (std::size_t row = 0; row < 60; ++row) {
    train +=
        std::to_string(row) + "," + (row % 2 == 0 ? "2.50" : ways.at(row % ways.size())) + "\n";
    test += std::to_string(row) + "," + (row % 2 == 0 ? "+2.5" : "1.000") + "\n";
  }
  put("d/train.csv", train);
  put("d/test.csv", test);
  const Dataset dataset = open({.path = scratch_.path() / "d"});
  EXPECT_THAT(dataset.class_names, ElementsAre("1", "2.5"));
  EXPECT_EQ(dataset.test.labels[0], 1);
  EXPECT_EQ(dataset.test.labels[1], 0);
}

TEST_F(OwnDataTest, HasTheSameClassesInEveryFormat) {
  std::string csv = "x,label\n";
  std::string svm;
  test::Bytes labels;
  test::Bytes numbers;
  for (int row = 0; row < 60; ++row) {
    const float label = row % 2 == 0 ? 1.0F : 5.0F;
    csv += "1," + std::string(row % 2 == 0 ? "1.0" : "5.0") + "\n";
    svm += (row % 2 == 0 ? "+1 1:1\n" : "5.0 1:1\n");
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&label);
    labels.insert(labels.end(), bytes, bytes + 4);
    numbers.push_back(1);
  }
  test::NpzWriter(scratch_.path() / "t.npz")
      .add("x.npy", test::npy("|u1", "(60, 1)", numbers))
      .add("y.npy", test::npy("<f4", "(60,)", labels));
  EXPECT_THAT(open({.path = put("t.csv", csv)}).class_names, ElementsAre("1", "5"));
  EXPECT_THAT(open({.path = put("t.svm", svm)}).class_names, ElementsAre("1", "5"));
  EXPECT_THAT(open({.path = scratch_.path() / "t.npz"}).class_names, ElementsAre("1", "5"));
}

TEST_F(OwnDataTest, OfAFolderOfImagesHasClassesByTheSameRule) {
  const auto image = test::png(4, 4, PNG_FORMAT_GRAY, test::Bytes(16, 9));
  for (const std::string folder : {"train/1", "train/007", "test/1.0", "test/007"}) {
    for (int i = 0; i < 20; ++i) {
      std::filesystem::create_directories(scratch_.path() / "set" / folder);
      test::write(scratch_.path() / "set" / folder / (std::to_string(i) + ".png"), image);
    }
  }
  EXPECT_THAT(open({.path = scratch_.path() / "set"}).class_names, ElementsAre("1", "007"));
}

TEST_F(OwnDataTest, KeepsNamesThatAreNotUtf8Apart) {
  std::string text = "x,label\n";
  for (int row = 0; row < 60; ++row) {
    text += std::to_string(row) + "," + (row % 2 == 0 ? "f\xFCr" : "f\xF6r") + "\n";
  }
  const Dataset dataset = open({.path = put("latin1.csv", text)});
  EXPECT_THAT(dataset.class_names, ElementsAre("f\xC3\xB6r", "f\xC3\xBCr"));
  EXPECT_THAT(dataset.findings,
              testing::Contains(testing::AllOf(HasSubstr("\"f\\xfcr\" is not UTF-8"),
                                               HasSubstr("Windows-1252"))));
  // An existing converted folder must give the same findings.
  EXPECT_EQ(open({.path = scratch_.path() / "latin1.csv"}).findings, dataset.findings);
}

TEST_F(OwnDataTest, KeepsNamesWithTabsAndLongOnesAsTheyAre) {
  const std::string name(100, 'n');
  std::string text = "\"x\n1\"," + name + "a," + name + "b,label\n";
  for (std::size_t row = 0; row < 90; ++row) {
    const std::vector<std::string> labels = {"\"a\tb\"", "\"a b\"", "\"a\nb\""};
    text += "1,2,3," + labels.at(row % 3) + "\n";
  }
  const Dataset dataset = open({.path = put("t.csv", text)});
  EXPECT_THAT(dataset.class_names, ElementsAre("a\tb", "a\nb", "a b"));
  EXPECT_THAT(dataset.column_names, ElementsAre("x\n1", name + "a", name + "b"));
}

TEST_F(OwnDataTest, SaysThatAClassIsInTheTestAlone) {
  put("d/train.csv", rows(40));
  put("d/test.csv", "n,same,label\n1,2,odd\n1,2,strange\n");
  EXPECT_THAT(
      open({.path = scratch_.path() / "d"}).findings,
      testing::Contains("class \"strange\" has no row to train on, but 0 for validation and "
                        "1 for the test: every answer to them is wrong"));
}

TEST_F(OwnDataTest, RefusesATestOfOtherClasses) {
  put("d/train.csv", rows(40));
  put("d/test.csv", "n,same,label\n1,2,0\n1,2,1\n");
  EXPECT_EQ(refusal({.path = scratch_.path() / "d"}),
            "--data: d: no label for test (\"0\", \"1\") occurs among the training labels "
            "(\"even\", \"odd\"); both need the same classes");
}

TEST_F(OwnDataTest, RefusesNamesInOneFileAlone) {
  put("d/train.csv", rows(40));
  put("d/test.csv", "1,2,odd\n1,2,even\n");
  EXPECT_EQ(refusal({.path = scratch_.path() / "d"}),
            "d/test.csv: its first line has none, that of d/train.csv has names of columns; names "
            "are allowed in all files of a set, or in none");
}

TEST_F(OwnDataTest, KnowsTheNamesOfTheFirstFileInTheOthers) {
  put(
      "d/train.csv", "2019,2020,label\n" + [] {
        std::string text;
        for (int row = 0; row < 40; ++row) text += "1,2," + std::to_string(row % 2) + "\n";
        return text;
      }());
  put("d/test.csv", "2019,2020,label\n3,4,1\n");
  EXPECT_THAT(open({.path = scratch_.path() / "d"}).test.numbers, ElementsAre(3, 4));
}

TEST_F(OwnDataTest, NoNameOfAFileForgesALineOfTheLog) {
  const std::string folder = "set/a\n12:00:00.000 I Digits accuracy: 0.9999";
  put(folder + "/\033]0;x\007.png", "nope");
  put("set/b/1.png", "nope");
  const std::string sentence = refusal({.path = scratch_.path() / "set"});
  EXPECT_EQ(sentence.find_first_of("\n\033\007"), std::string::npos) << sentence;
  EXPECT_THAT(sentence, HasSubstr("a\\n12:00:00.000"));
}

TEST(OwnDataName, IsAWord) {
  EXPECT_EQ(own_data_name("x/iris.csv"), "iris");
  EXPECT_EQ(own_data_name("x/my data/"), "my_data");
  const std::string here = std::filesystem::current_path().stem().string();
  EXPECT_EQ(own_data_name("."), here);
  EXPECT_EQ(own_data_name("./"), here);
  EXPECT_EQ(own_data_name("x/.."), here);
  EXPECT_EQ(own_data_name("x/../iris.csv"), "iris");
  EXPECT_EQ(own_data_name("/"), "data");
  EXPECT_EQ(own_data_name(std::string(100, 'a') + ".csv"), std::string(40, 'a'));
}

}  // namespace
}  // namespace disttf::data
