#include "roles/trainer/shell/ps_client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "math/aligned.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/tensor_memory.h"
#include "run/task.h"

namespace disttf::roles {
namespace {

// Otherwise the ranges of several ps could not be read as one vector.
static_assert(math::kShardAlignmentFloats * sizeof(float) % net::kPageBytes == 0);

}  // namespace

PsClient::PsClient(const Task& task, const StopSignal& stop)
    : task_(task),
      stop_(stop),
      session_(task, std::mt19937_64(std::random_device{}())),
      host_sum_(task, stop),
      incarnation_(task.incarnation),
      places_(task.cluster.ps.size()),
      places_before_(task.cluster.ps.size()),
      polled_(task.cluster.ps.size() + 2) {
  links_.reserve(task.cluster.ps.size());
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    links_.emplace_back(task, stop, index);
  }
  // Otherwise some trainers share a processor wherever they run.
  wait_.may_leave_processor(have_processors_each(task));
}

void PsClient::continue_as(std::uint64_t incarnation) noexcept {
  incarnation_ = incarnation;
  session_.continue_as(incarnation);
}

// ------------------------------------------------------------------------- before the first step

bool PsClient::connect() {
  session_.begin_connect(begin_now());
  // Before the first dial, so that a reported incarnation is taken at once.
  look_at_incarnations(awake_.now());
  try {
    run();
    // The run is over; is_over() returns that.
  } catch (const RunOver&) {
  }
  return session_.is_over();
}

std::string PsClient::get_config() {
  session_.begin_get_config(begin_now());
  run();
  return std::move(text_);
}

void PsClient::prepare(const Run& run) {
  gradients_.prepare(make_gradient_memory(task_, run.size, run.gradients), run.size,
                     std::max<std::size_t>(run.micro_batches, 1));
  session_.prepare({.size = run.size,
                    .fully_synchronous = run.fully_synchronous,
                    .elastic = run.micro_batches != 0,
                    .configuration = run.configuration});
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const math::Range range = session_.range(index).range;
    links_[index].prepare({.range = range,
                           .wire = run.wire,
                           .memory = gradients_.memory(),
                           .most_placed = most_of_ps(range.size(), run.trainers)});
  }
  // A leader's sum replaces exactly what the ps would compute, so every mode that treats single
  // gradients differently is excluded.
  const bool is_added_up = run.fully_synchronous && run.micro_batches == 0 && !run.judges_norms &&
                           gradients_.memory() != nullptr && gradient_flags(run.wire) == 0 &&
                           tensor_flags(run.wire) == 0;
  if (is_added_up) {
    host_sum_.prepare(run.size, run.isa);
  }
}

void PsClient::lead(std::string config_json, std::function<TrainingState()> provide) {
  config_json_ = std::move(config_json);
  provide_state_ = std::move(provide);
  session_.lead();
}

// ---------------------------------------------------------------------------------------- a step

StepReply PsClient::pull(std::span<float> parameters) {
  // Neighbours must not wait for this trainer while it joins.
  host_sum_.leave();
  session_.begin_pull(begin_now());
  const StepReply reply = run_step(parameters);
  begin_step();
  return reply;
}

void PsClient::leave_memory() {
  const bool was_handed_over =
      std::ranges::any_of(links_, [](const PsLink& link) { return link.was_in_place(); });
  // Memory that no ps has mapped can be reused.
  if (!std::exchange(is_memory_left_, false) || !was_handed_over) {
    return;
  }
  // A suspended ps may still read there: it keeps that memory.
  gradients_.leave_memory();
  for (PsLink& link : links_) {
    link.unsettle();
  }
}

void PsClient::begin_step() {
  gradients_.begin_step();
  if (is_memory_left_) {
    static_cast<void>(place_gradient());
    settle();
  }
}

std::span<float> PsClient::place_gradient() {
  leave_memory();
  return gradients_.begin();
}

std::span<float> PsClient::begin_gradient() {
  const std::span<float> place = place_gradient();
  discover_neighbours_again();
  return place;
}

std::pair<std::uint64_t, std::uint64_t> PsClient::traffic() const noexcept {
  std::pair<std::uint64_t, std::uint64_t> bytes = {0, 0};
  for (const PsLink& link : links_) {
    bytes.first += link.bytes_sent();
    bytes.second += link.bytes_received();
  }
  return bytes;
}

bool PsClient::pushes_ahead() const noexcept {
  return std::ranges::any_of(links_, [](const PsLink& link) { return link.sends_ahead(); });
}

void PsClient::push_ahead(std::uint64_t sequence, bool keep_snapshot, std::size_t ready) {
  // If a group sum is likely, the gradient itself is probably not pushed at all.
  if (!is_sent_ahead_ && host_sum_.is_likely()) {
    return;
  }
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const math::Range range = session_.range(index).range;
    if (ready > range.begin && links_[index].sends_ahead()) {
      is_sent_ahead_ = true;
      links_[index].push_ahead(session_.push_header_ahead(index, sequence, keep_snapshot),
                               part_of(gradients_.current(), index),
                               std::min(ready, range.end) - range.begin);
    }
  }
}

StepReply PsClient::push_pull(std::uint64_t sequence, std::span<float> parameters,
                              bool keep_snapshot, const std::function<void()>& meanwhile) {
  // Locations of the previous step's parameters are no longer valid.
  std::ranges::fill(places_, net::BodyLocation{});
  session_.begin_push_pull(sequence, keep_snapshot, begin_now());
  // A ps leaves these parameters unchanged until this trainer pushes again (see Answer).
  may_stay_ = true;
  StepReply reply = run_step(parameters, meanwhile);
  host_sum_.answered();
  reply.parameters = joined(parameters);
  return reply;
}

std::span<const float> PsClient::joined(std::span<float> parameters) {
  // Only if all ranges lie in shared memory can they be read as one vector; otherwise all are
  // copied.
  if (std::ranges::all_of(places_, [](const auto& place) { return place.view != nullptr; })) {
    const std::span<const std::byte> bytes = joined_bodies_.over(places_);
    if (!bytes.empty()) {
      return {reinterpret_cast<const float*>(bytes.data()), parameters.size()};
    }
  }
  // Some ranges are in `parameters` already, so the others are copied there.
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const net::BodyLocation& place = places_[index];
    if (place.view) {
      std::copy_n(place.bytes().begin(), place.size,
                  std::as_writable_bytes(part_of(parameters, index)).begin());
    }
  }
  return parameters;
}

std::vector<math::Range> PsClient::dropped_ranges() const {
  std::vector<math::Range> ranges;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if (session_.was_dropped(index)) {
      ranges.push_back(session_.range(index).range);
    }
  }
  return ranges;
}

void PsClient::push(std::uint64_t micro_batch) {
  session_.push(micro_batch);
  perform();
  gradients_.pushed();
}

bool PsClient::await_step(std::uint64_t sequence, std::span<float> parameters, bool keep_snapshot,
                          StepReply& reply, std::vector<std::uint64_t>& missing,
                          const std::function<void()>& meanwhile) {
  // After kNeedsWork the same exchange continues, so its answers stay valid.
  const bool goes_on = session_.outcome() == RunSession::Outcome::kNeedsWork;
  if (!goes_on) {
    // The previous reply's memory must stay mapped: gradients are still computed from it.
    std::swap(places_, places_before_);
    std::ranges::fill(places_, net::BodyLocation{});
  }
  session_.begin_await_step(sequence, keep_snapshot, goes_on ? awake_.now() : begin_now());
  // A suspended trainer does not stop an elastic run, so a worker checks what it reads in shared
  // memory; the chief judges what it reads, and needs a copy.
  may_stay_ = task_.cluster.rank_of(task_.self) != 0;
  const StepReply next = run_step(parameters, meanwhile);
  if (session_.outcome() == RunSession::Outcome::kNeedsWork) {
    missing.assign(session_.work().begin(), session_.work().end());
    return false;  // `reply` still holds what these are computed from
  }
  reply = next;
  reply.parameters = joined(parameters);
  begin_step();
  return true;
}

// Received into other memory first: while some ranges have arrived a ps may be lost, and is then
// restored from the previous parameters, which must not be a mixture. (The gradient is not needed
// any more, here as in await_others().)
StepReply PsClient::peek(std::span<float> parameters) {
  const std::span<float> received = place_gradient();
  host_sum_.leave();
  session_.begin_peek(begin_now());
  const StepReply newest = run_step(received);
  // All ranges have arrived, and are of one exchange.
  std::copy(received.begin(), received.end(), parameters.begin());
  return {newest, parameters};
}

void PsClient::send_best() {
  session_.begin_send_best(begin_now());
  run();
}

StepReply PsClient::run_step(std::span<float> parameters, const std::function<void()>& meanwhile) {
  parameters_ = parameters;
  has_answer_ = false;
  receiving_ = {};
  run(meanwhile);
  return {session_.reply(), parameters};
}

// ----------------------------------------------------------------------------------------- the end

bool PsClient::await_end() {
  host_sum_.leave();
  session_.begin_await_end(begin_now());
  try {
    run();
  } catch (const Failure&) {
    if (!session_.was_released()) {
      throw;
    }  // when the run is over, a signal does not matter
  }
  return session_.was_released();
}

// Returns nothing also if it is refused, or on a signal.
std::optional<std::uint64_t> PsClient::fetch_final(std::span<float> parameters) {
  session_.begin_fetch_final(begin_now());
  parameters_ = parameters;
  try {
    run();
  } catch (const OtherConfiguration&) {
    // The ps train something else, so the caller begins anew.
    throw;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return session_.final_step();
}

bool PsClient::await_others() {
  host_sum_.leave();
  static_cast<void>(place_gradient());
  session_.begin_await_others(begin_now());
  // The result must not be overwritten by a state that may be an earlier one.
  parameters_ = gradients_.current();
  run();
  return !session_.reply().joined;
}

void PsClient::shutdown() {
  session_.begin_shutdown(begin_now());
  try {
    run();
  } catch (const Failure&) {  // a signal, after the result: wait for no ps any more
    session_.announce_end();
    perform();
  }
}

std::vector<std::uint64_t> PsClient::acknowledged() const {
  std::vector<std::uint64_t> counts;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    counts.push_back(session_.range(index).acknowledged());
  }
  return counts;
}

std::string PsClient::status(std::size_t ps_index) {
  session_.begin_status(ps_index, begin_now());
  run();
  return session_.has_text() ? std::move(text_) : std::string();
}

// ------------------------------------------------------------------------ the core's effects

void PsClient::perform() {
  session_.out().drain([this](const auto& effect) { apply(effect); });
}

void PsClient::apply(const SendRequest& effect) {
  if (const auto error = send(effect)) {
    session_.lost(effect.range, error, net::Clock::now());
  } else {
    session_.sent(effect.range, net::Clock::now());
  }
}

std::error_code PsClient::send(const SendRequest& effect) {
  PsLink& link = links_[effect.range];
  switch (effect.body) {
    case RequestBody::kNone:
      return link.send(effect.header, {});
    case RequestBody::kConfiguration:
      return link.send(effect.header, std::as_bytes(std::span(config_json_)));
    case RequestBody::kState:
      return send_state(effect);
    case RequestBody::kGradient:
      break;
  }
  // The first push over a channel: how the gradient travels must be agreed on before it is sent.
  if (!link.is_settled()) {
    // Agreeing may last until settle_until(), which is no suspension of this process.
    check_awake(link.settle_until());
    auto error = link.settle();
    if (!error && effect.range == 0 && !link.has_frame()) {
      error = discover_neighbours();
    }
    check_awake();
    if (error) {
      return error;
    }
  }
  return push(effect);
}

std::error_code PsClient::send_state(const SendRequest& effect) {
  const math::Range range = session_.range(effect.range).range;
  // One block, since a frame has one body.
  math::AlignedVector values((1 + state_->optimizer.size()) * range.size());
  const auto slice = [range](const math::AlignedVector& whole) {
    return whole.span().subspan(range.begin, range.size());
  };
  const std::span<const float> own = slice(state_->parameters);
  float* to = std::copy(own.begin(), own.end(), values.data());
  for (const TrainingState::Tensor& tensor : state_->optimizer) {
    const std::span<const float> part = slice(tensor.values);
    to = std::copy(part.begin(), part.end(), to);
  }
  return links_[effect.range].send(effect.header, std::as_bytes(values.span()));
}

void PsClient::apply(const Dial& effect) {
  check_awake(effect.until);
  // Members of the host group must not wait while this trainer dials.
  host_sum_.leave();
  push_without_leader();
  is_memory_left_ = is_memory_left_ || links_[effect.range].was_open();
  const DialAnswer answer = links_[effect.range].open(effect, incarnation_);
  check_awake();
  // Handled before this link, which may be the last missing one.
  look_at_incarnations(awake_.now());
  session_.dialed(effect.range, effect.attempt, answer, awake_.now());
}

void PsClient::take_incarnation_above(std::uint64_t other) {
  incarnation_ = incarnation_above(other, new_incarnation());
  session_.took_incarnation(incarnation_);
  log_info("found an earlier process of " + describe(task_.cluster, task_.self) +
           " whose clock was ahead; continues with a higher incarnation");
  // Heartbeats and views continue under the same incarnation.
  for (const auto& hook : on_incarnation_) {
    hook(incarnation_);
  }
}

void PsClient::apply(const NameGeneration& effect) {
  settle();
  if (on_joined_) {
    on_joined_(effect.generation);
  }
}

void PsClient::settle() {
  if (gradients_.memory() == nullptr) {
    return;
  }
  std::size_t in_place = 0;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    PsLink& link = links_[index];
    check_awake(link.settle_until());
    const auto error = link.settle();
    check_awake();
    stop_.throw_if_stopped();
    if (error) {
      session_.lost(index, error, awake_.now());
      // Else there is a frame, such as a refusal, which is handled in turn.
    } else if (!link.has_frame()) {
      check_way_to(task_, link.name(), link.is_in_place());
    }
    in_place += link.is_in_place() ? 1U : 0U;
  }
  if (links_.front().is_open() && !links_.front().has_frame()) {
    if (const auto error = discover_neighbours()) {
      session_.lost(0, error, awake_.now());
    }
  }
  if (in_place_ != in_place) {
    in_place_ = in_place;
    log_debug(describe_ways(in_place, links_.size()));
  }
}

}  // namespace disttf::roles
