#include "net/wire/replication.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

constexpr View kView{
    .number = {.chief = 0x1122334455667788, .count = 0x01020304}, .primary = 1, .paired = true};
constexpr Report kReport{.view = {.chief = 9, .count = 3},
                         .replica_role = ReplicaRole::kBackup,
                         .holds = true,
                         .wants_alone = false,
                         .wants_pair = true,
                         .finished = true,
                         .paired = true,
                         .trainers = in_set(1) | in_set(71)};
const UpdateHead kUpdate{.incarnation = 0x1122334455667788, .trainers = {0x0105}};
constexpr FillHead kFill{
    .lineage = 0x1122334455667788, .counters = {1, 2, 3, 4, 5, 6}, .trainers = 7, .tensors = 8};
constexpr FillTrainer kTrainer{.incarnation = 1, .last_sequence = 2, .clock = 3, .used = 4};

TEST(Replication, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(kView)), "88776655443322110403020101010000");
  EXPECT_EQ(hex(encode(kReport)), "090000000000000003000000021d00008200000000000000");
  EXPECT_EQ(hex(encode(kUpdate)), "88776655443322110501000000000000");
  EXPECT_EQ(hex(encode(UpdateHead{.trainers = {0, 2}})),
            "000000000000000000000000000000000200000000000000");
  EXPECT_EQ(hex(encode(kFill)),
            "8877665544332211"
            "010000000000000002000000000000000300000000000000"
            "040000000000000005000000000000000600000000000000"
            "07000000080000000000000000000000");
  EXPECT_EQ(hex(encode(kTrainer)),
            "0100000000000000020000000000000003000000000000000400000000000000");
}

// The views of the newer chief take precedence, however many the older one creates.
TEST(ViewNumber, IsOrderedByItsChiefFirst) {
  EXPECT_GT((ViewNumber{.chief = 9, .count = 3}), (ViewNumber{.chief = 8, .count = 4}));
  EXPECT_GT((ViewNumber{.chief = 8, .count = 4}), (ViewNumber{.chief = 8, .count = 3}));
}

TEST(Replication, IsReadBackAndNothingElseIs) {
  expect_read_back(kView);
  expect_read_back(kReport);
  expect_read_back(kUpdate);
  expect_read_back(kFill);
  expect_read_back(kTrainer);
}

TEST(Replication, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(decode_with(kView, 12, 2), WireError::kBadBody);
  EXPECT_EQ(decode_with(kView, 13, 2), WireError::kBadBody);
  EXPECT_EQ(decode_with(kView, 14, 1), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 12, 3), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 13, 32), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 15, 1), WireError::kBadBody);
  UpdateHead none;
  EXPECT_EQ(decode(encode(UpdateHead{.trainers = {0, 0}}), none), WireError::kBadBody)
      << "the sum of no gradients";
  EXPECT_EQ(decode(encode(UpdateHead{}), none), WireError::kBadBody);
  EXPECT_EQ(decode_with(kFill, 64, 1), WireError::kBadBody);
}

}  // namespace
}  // namespace disttf::net
