#include "roles/chief/shell/sharded_save.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <stdexcept>

#include "roles/process/machine.h"

namespace disttf::roles {
namespace {

// A ps whose disk hangs beats on. Longer than any range takes on a disk worth its name; half of it
// would be too short for 8 GiB with adam on a slow one.
constexpr std::chrono::minutes kLongestWrite{10};

// The step of ps 0's cut, once all of them are known to have it.
std::optional<std::uint64_t> find_all(std::deque<CutLink>& links, const CutRequest& cut,
                                      bool same_step) {
  std::optional<std::uint64_t> first;
  for (CutLink& link : links) {
    std::uint64_t step = 0;
    if (link.open(cut) || link.find(cut, step)) {
      return std::nullopt;
    }
    if (first && step != *first && same_step) {
      return std::nullopt;
    }
    first = first.value_or(step);
  }
  return first;
}

}  // namespace

std::optional<WrittenShards> write_shards(const Task& task, const CutRequest& cut, bool same_step,
                                          const CheckpointStore& directory,
                                          const net::Interrupt& interrupt) {
  std::deque<CutLink> links;
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    links.emplace_back(task, index, interrupt);
  }
  // Agreed upon before anybody writes: at the end of a run the ps may still be moving, and are
  // asked again and again until they are at one step.
  const auto step = find_all(links, cut, same_step);
  if (!step) {
    return std::nullopt;
  }
  WrittenShards written{.id = {.step = *step, .attempt = random_incarnation()}, .files = {}};
  const auto deadline = std::min(cut.deadline, net::Clock::now() + kLongestWrite);
  std::exception_ptr failure;
  std::vector<CutLink*> writing;
  const auto fail = [&failure] { failure = failure ? failure : std::current_exception(); };
  for (CutLink& link : links) {
    if (const auto error = link.start_writing(cut, written.id)) {
      failure = std::make_exception_ptr(
          PsLost(link.name() + " could not be told to write: " + error.message()));
      break;
    }
    writing.push_back(&link);
  }
  // All of them are waited for, so that none still writes into what is about to be removed.
  for (CutLink* link : writing) {
    try {
      written.files.push_back(link->await_written(deadline));
    } catch (const std::exception&) {
      fail();
    }
  }
  if (failure) {
    directory.discard_shards(written.id);
    try {
      std::rethrow_exception(failure);
    } catch (const PsLost&) {
      if (cut.again) {
        throw;
      }
      return std::nullopt;  // whoever asks once sees to it that the ps comes back
    }
  }
  return written;
}

}  // namespace disttf::roles
