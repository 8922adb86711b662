#include "roles/ps/core/backup_receiver.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace disttf::roles {

namespace {

// REQUIRES: `ranks` is not empty.
std::size_t first_of(const net::RankSet& ranks) {
  const auto place = std::ranges::find_if(ranks, [](std::uint64_t bits) { return bits != 0; });
  return static_cast<std::size_t>(place - ranks.begin()) * 64 +
         static_cast<std::size_t>(std::countr_zero(*place));
}

// Returns whether these are trainers of the run, and as many as one update needs.
bool may_update(const Shard& shard, const net::RankSet& ranks) {
  std::size_t count = 0;
  for (const std::uint64_t bits : ranks) {
    count += static_cast<std::size_t>(std::popcount(bits));
  }
  const std::size_t in_last = shard.config().trainers % 64;
  // Bits beyond the last trainer name no rank of this run.
  const bool are_trainers = in_last == 0 || ranks.back() >> in_last == 0;
  // A correct primary makes no step with more or fewer gradients.
  return are_trainers && count == shard.policy().wanted();
}

BackupReceiver::Refused refused(std::string why) { return {.why = std::move(why)}; }

}  // namespace

BackupReceiver::Outcome BackupReceiver::part() {
  switch (part_) {
    case Part::kFillHead:
      return fill_head();
    case Part::kFillTrainers:
      return fill_trainers();
    case Part::kTensors:
      return filled();
    case Part::kUpdateHead:
      return update_head();
    case Part::kGradient:
      break;
  }
  return updated(shard_->update_inbox());
}

bool BackupReceiver::complete(net::Generation generation) noexcept {
  if (!is_filled() || generation != generation_) {
    return false;
  }
  // From here on this host may be made the primary.
  state_ = State::kComplete;
  return true;
}

bool BackupReceiver::conclude(const net::Conclude& conclude, Shard& shard) {
  // A CONCLUDE of another state would end the run at the wrong step.
  if (!is_filled() || conclude.generation != generation_ || conclude.step != shard.step()) {
    return false;
  }
  shard.conclude();
  return true;
}

BackupReceiver::Read BackupReceiver::into_bytes(Part part, std::size_t size) {
  part_ = part;
  bytes_.resize(size);
  places_.assign(1, bytes_);
  return {.places = places_};
}

// ------------------------------------------------------------------------------- the whole state

BackupReceiver::Outcome BackupReceiver::fill(const net::FrameHeader& header,
                                             std::shared_ptr<Shard> shard) {
  // A new FILL invalidates the copy at once: its tensors are about to be overwritten.
  state_ = State::kNothing;
  shard_ = std::move(shard);
  header_ = header;
  // The size is compared with the run's once the head has been read.
  net::Fill fill;
  if (fill.from_header(header) || header.body_size < net::kBodyBytes<net::FillHead>) {
    return refused("not the state of a range");
  }
  return into_bytes(Part::kFillHead, net::kBodyBytes<net::FillHead>);
}

BackupReceiver::Outcome BackupReceiver::fill_head() {
  if (net::decode(bytes_, fill_)) {
    return refused("not the state of a range");
  }
  const math::Range range = shard_->range();
  const std::size_t tensor_bytes = range.size() * sizeof(float);
  // The tensors of a state; max(): a range may be empty.
  const std::size_t plain = shard_->storage().state_size() / std::max<std::size_t>(range.size(), 1);
  // A fully synchronous run may send one tensor more: the parameters of the previous step.
  with_previous_ = fill_.tensors == plain + 1 && shard_->config().every_gradient_counts();
  if (fill_.trainers != shard_->config().trainers || (fill_.tensors != plain && !with_previous_) ||
      header_.range_begin != range.begin ||
      header_.body_size != net::kBodyBytes<net::FillHead> +
                               fill_.trainers * net::kBodyBytes<net::FillTrainer> +
                               fill_.tensors * tensor_bytes) {
    return refused("the state of another range");
  }
  return into_bytes(Part::kFillTrainers, fill_.trainers * net::kBodyBytes<net::FillTrainer>);
}

BackupReceiver::Outcome BackupReceiver::fill_trainers() {
  const auto& counters = fill_.counters;
  // Kept here until the tensors have arrived: the shard takes both at once, in filled().
  identity_ = {.step = header_.step,
               .counters = {.pushes = counters[0],
                            .applied = counters[1],
                            .repeats = counters[2],
                            .dropped = counters[3],
                            .staleness_sum = counters[4],
                            .staleness_max = counters[5]},
               .trainers = {}};
  const std::span<const std::byte> bytes = bytes_;
  for (std::size_t rank = 0; rank < fill_.trainers; ++rank) {
    net::FillTrainer trainer;
    if (net::decode(bytes.subspan(rank * net::kBodyBytes<net::FillTrainer>,
                                  net::kBodyBytes<net::FillTrainer>),
                    trainer)) {
      return refused("not the state of a range");
    }
    identity_.trainers.push_back({.incarnation = trainer.incarnation,
                                  .last_sequence = trainer.last_sequence,
                                  .clock = trainer.clock,
                                  .used = trainer.used});
  }
  part_ = Part::kTensors;
  places_.clear();
  // Received into the shard itself: a second copy of a whole state may not fit into memory.
  for (const std::span<float> place : shard_->begin_fill(with_previous_)) {
    places_.push_back(std::as_writable_bytes(place));
  }
  return Read{.places = places_};
}

BackupReceiver::Outcome BackupReceiver::filled() {
  // Released, so that an idle connection does not keep a replaced shard alive.
  const std::shared_ptr<Shard> shard = std::exchange(shard_, nullptr);
  shard->finish_fill(identity_, with_previous_);
  // FINISHED: the primary had already concluded the run when it sent this state.
  if ((header_.flags & net::kFlagFinished) != 0) {
    shard->conclude();
  }
  state_ = State::kFilled;
  // Only now, once the state is whole: complete() and update() compare with it.
  generation_ = header_.generation;
  Filled filled{.step = header_.step,
                .generation = generation_,
                .lineage = fill_.lineage,
                .incarnations = {}};
  for (const TrainerIdentity& trainer : identity_.trainers) {
    filled.incarnations.push_back(trainer.incarnation);
  }
  return filled;
}

// ------------------------------------------------------------------------------------ one update

BackupReceiver::Outcome BackupReceiver::update(const net::FrameHeader& header,
                                               std::shared_ptr<Shard> shard,
                                               const net::BodyInPlace& in_place) {
  net::Update update;
  if (const auto error = update.from_header(header)) {
    return refused(error.message());
  }
  const std::size_t head_bytes = net::padded_update_head_bytes(shard->config().trainers);
  const std::size_t gradient_bytes = shard->range().size() * sizeof(float);
  // An update with a state comes only through memory that both processes share; over the socket the
  // copy already has the state.
  const bool has_state =
      !in_place.bytes.empty() &&
      header.body_size == head_bytes + shard->storage().update_size_with_state() * sizeof(float);
  if (!is_filled() || update.generation != generation_ ||
      update.range_begin != shard->range().begin ||
      (header.body_size != head_bytes + gradient_bytes && !has_state)) {
    return refused("an update of another state");
  }
  shard_ = std::move(shard);
  header_ = header;
  if (in_place.bytes.empty()) {
    return into_bytes(Part::kUpdateHead, head_bytes);
  }
  if (auto nonsense = read_head(in_place.bytes.first(head_bytes))) {
    return *std::move(nonsense);
  }
  const std::span<const std::byte> tensors = in_place.bytes.subspan(head_bytes);
  const std::span floats(reinterpret_cast<const float*>(tensors.data()),
                         tensors.size() / sizeof(float));
  // The state begins at a cache-line boundary behind the gradient, hence the padded size.
  const std::size_t behind = has_state ? shard_->storage().padded_size() : floats.size();
  return updated(floats.first(shard_->range().size()), floats.subspan(behind), in_place.owner);
}

std::optional<BackupReceiver::Refused> BackupReceiver::read_head(std::span<const std::byte> head) {
  const auto zeros = head.subspan(net::update_head_bytes(shard_->config().trainers));
  // The padding is checked too: non-zero bytes there mean that the two sides disagree on the
  // layout.
  if (net::decode(head.first(head.size() - zeros.size()), update_) ||
      std::ranges::any_of(zeros, [](std::byte byte) { return byte != std::byte{}; }) ||
      !may_update(*shard_, update_.trainers) || shard_->finished() ||
      (shard_->config().sync_replicas && header_.step != shard_->step())) {
    return refused("an update that does not follow the last one");
  }
  return std::nullopt;
}

BackupReceiver::Outcome BackupReceiver::update_head() {
  if (auto nonsense = read_head(bytes_)) {
    return *std::move(nonsense);
  }
  part_ = Part::kGradient;
  places_.assign(1, std::as_writable_bytes(shard_->update_inbox()));
  return Read{.places = places_};
}

BackupReceiver::Outcome BackupReceiver::updated(std::span<const float> gradient,
                                                std::span<const float> state,
                                                std::shared_ptr<const void> memory) {
  // Sync: any trainer of the update stands for all of them.
  const std::size_t trainer = first_of(update_.trainers);
  std::exchange(shard_, nullptr)
      ->take_update({.push = {.trainer = trainer,
                              .incarnation = update_.incarnation,
                              .step = header_.step,
                              .sequence = header_.sequence},
                     .gradient = gradient,
                     .trainers = update_.trainers,
                     .state = state,
                     .memory = std::move(memory)});
  return Updated{.trainer = trainer, .incarnation = update_.incarnation};
}

}  // namespace disttf::roles
