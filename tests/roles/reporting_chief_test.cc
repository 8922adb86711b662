// Records of the chief's processes.
#include "roles/launch/core/reporting_chief.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

constexpr pid_t kFirstChief = 100;
constexpr pid_t kNextChief = 101;

TEST(ReportingChief, TrainsOnceItsProcessHasReported) {
  ReportingChief chief;
  EXPECT_FALSE(chief.trains(kFirstChief));
  EXPECT_FALSE(chief.trains(-1));
  EXPECT_TRUE(chief.take(kFirstChief, kFirstChief));
  EXPECT_TRUE(chief.trains(kFirstChief));
}

TEST(ReportingChief, ALateRecordOfItsPredecessorDoesNotCount) {
  ReportingChief chief;
  EXPECT_TRUE(chief.take(kFirstChief, kFirstChief));
  EXPECT_FALSE(chief.take(kFirstChief, kNextChief));
  EXPECT_FALSE(chief.trains(kNextChief)) << "it does not handle the signals yet";
  EXPECT_TRUE(chief.take(kNextChief, kNextChief));
  EXPECT_FALSE(chief.take(kFirstChief, kNextChief));
  EXPECT_TRUE(chief.trains(kNextChief));
}

TEST(ReportingChief, TheLastRecordsOfAChiefThatHasEndedCount) {
  ReportingChief chief;
  EXPECT_TRUE(chief.take(kFirstChief, -1));
  EXPECT_FALSE(chief.trains(-1));
  EXPECT_FALSE(chief.trains(kNextChief));
}

}  // namespace
}  // namespace disttf::roles
