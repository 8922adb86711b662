#include "storage/download/datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/wire/run_task_request.h"

namespace disttf::roles {
namespace {

// What a driver of another release orders by number, and what a chief publishes by word, must be
// the same set for ever.
TEST(Datasets, KeepTheirNumbersAndWords) {
  ASSERT_GE(datasets().size(), 2U);
  EXPECT_EQ(find_dataset_of_number(2), find_dataset("mnist"));
  EXPECT_EQ(find_dataset_of_number(3), find_dataset("digits"));
  EXPECT_EQ(find_dataset_of_word("MNIST"), find_dataset("mnist"));
  EXPECT_EQ(find_dataset_of_word("Digits"), find_dataset("digits"));
  EXPECT_EQ(find_dataset_of_number(5), find_dataset("kmnist"));
  EXPECT_EQ(find_dataset_of_word("KMNIST"), find_dataset("kmnist"));
  EXPECT_EQ(find_dataset_of_number(4), find_dataset("fashion_mnist"));
  EXPECT_EQ(find_dataset_of_word("Fashion-MNIST"), find_dataset("fashion_mnist"));
  EXPECT_EQ(find_dataset_of_number(6), find_dataset("qmnist"));
  EXPECT_EQ(find_dataset_of_word("QMNIST"), find_dataset("qmnist"));
  EXPECT_EQ(find_dataset_of_number(7), find_dataset("emnist_byclass"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-byclass"), find_dataset("emnist_byclass"));
  EXPECT_EQ(find_dataset_of_number(8), find_dataset("emnist_bymerge"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-bymerge"), find_dataset("emnist_bymerge"));
  EXPECT_EQ(find_dataset_of_number(9), find_dataset("emnist_balanced"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-balanced"), find_dataset("emnist_balanced"));
  EXPECT_EQ(find_dataset_of_number(10), find_dataset("emnist_letters"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-letters"), find_dataset("emnist_letters"));
  EXPECT_EQ(find_dataset_of_number(11), find_dataset("emnist_digits"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-digits"), find_dataset("emnist_digits"));
  EXPECT_EQ(find_dataset_of_number(12), find_dataset("emnist_mnist"));
  EXPECT_EQ(find_dataset_of_word("EMNIST-mnist"), find_dataset("emnist_mnist"));
  EXPECT_EQ(find_dataset_of_number(13), find_dataset("cifar10"));
  EXPECT_EQ(find_dataset_of_word("CIFAR-10"), find_dataset("cifar10"));
}

TEST(Datasets, AreFoundByNameWordAndNumberAlike) {
  for (const DatasetRow& row : datasets()) {
    EXPECT_EQ(find_dataset(row.name), &row);
    EXPECT_EQ(find_dataset_of_word(row.word()), &row);
    EXPECT_EQ(find_dataset_of_number(row.number), &row);
    EXPECT_GT(row.number, net::kAnyData) << row.name;
    EXPECT_NE(row.name, "auto");
  }
  EXPECT_EQ(find_dataset("auto"), nullptr);
  EXPECT_EQ(find_dataset_of_word("mnist"), nullptr) << "that is its name";
  EXPECT_EQ(find_dataset_of_number(net::kAnyData), nullptr);
}

TEST(Datasets, AreEitherDownloadedOrBuiltIn) {
  for (const DatasetRow& row : datasets()) {
    EXPECT_NE(row.is_built_in(), row.mirrors != nullptr) << row.name;
  }
  EXPECT_EQ(usual_dataset().name, "mnist");
  EXPECT_EQ(built_in_dataset().name, "digits");
}

}  // namespace
}  // namespace disttf::roles
