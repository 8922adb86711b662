#include "storage/checkpoint/shell/shard_writer.h"

#include <exception>
#include <new>
#include <system_error>

namespace disttf::roles {
namespace {

// Short enough for a std::string without an allocation.
constexpr const char* kNoMemoryToWrite = "out of memory";

}  // namespace

ShardWriter::~ShardWriter() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::optional<std::string> ShardWriter::start(ShardWriteRequest request, Done done) {
  if (store_.path().empty()) {
    return "it was started without --train_dir; with --sharded_checkpoint every ps needs "
           "that of the chief";
  }
  // One write at a time: each keeps a snapshot of the whole range in memory.
  if (busy_) {
    return "it is still writing its range of step " + std::to_string(step_);
  }
  if (thread_.joinable()) {
    thread_.join();  // it has called `done`
  }
  step_ = request.id.step;
  // Before the thread starts: it resets the flag, and may do so at once.
  busy_ = true;
  try {
    thread_ = std::thread([this, request = std::move(request), done = std::move(done)]() mutable {
      Result result(kNoMemoryToWrite);
      try {
        result = write(request);
      } catch (const std::bad_alloc&) {  // the result says so
      }
      request.snapshot.reset();  // the memory is not needed while `done` is in progress
      busy_ = false;
      try {
        done(std::move(result));
      } catch (const std::exception&) {  // the caller looks for the result itself
      }
    });
  } catch (const std::system_error& error) {
    busy_ = false;
    return std::string("it cannot start a thread: ") + error.what();
  }
  return std::nullopt;
}

// Throws only std::bad_alloc: there may be no memory for a sentence.
ShardWriter::Result ShardWriter::write(const ShardWriteRequest& request) const {
  try {
    const std::size_t size = request.range.size();
    // The snapshot has the parameters first, then each tensor of the optimizer, of the same size.
    const auto values = request.snapshot->values.span();
    ShardView view{.range = request.range, .parameters = values.first(size), .optimizer = {}};
    for (std::size_t tensor = 0; tensor < request.optimizer.size(); ++tensor) {
      view.optimizer.push_back(
          {.name = request.optimizer[tensor], .values = values.subspan((tensor + 1) * size, size)});
    }
    return store_.write_shard(request.id, request.shard, request.shards, view, request.layout);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace disttf::roles
