#include "allreduce/notes.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::allreduce {
namespace {

using train::StopReason;

constexpr size_t kReasons = static_cast<size_t>(StopReason::error) + 1;
/// Positions of the values. A double travels as two floats; the second is the remainder of the first.
enum Place : uint8_t { kLoss, kLossRest, kCorrect, kExamples, kContributors, kRegroup, kStops };
constexpr size_t kFixed = 16;
static_assert(kStops + kReasons <= kFixed);
constexpr size_t kPerMember = 14;

/// A float holds 24 bits exactly, and adding zeros does not change them.
constexpr unsigned kTimeBits = 21;
constexpr int kTimeParts = 3;

void write_time(int64_t time, float* to) {
  for (int i = 0; i < kTimeParts; ++i) {
    to[i] = static_cast<float>((static_cast<uint64_t>(time) >> (kTimeBits * static_cast<unsigned>(i))) &
                               ((1U << kTimeBits) - 1));
  }
}

int64_t read_time(const float* from) {
  uint64_t time = 0;
  for (int i = 0; i < kTimeParts; ++i) {
    const bool fits = from[i] >= 0 && from[i] < static_cast<float>(1U << kTimeBits);
    if (!fits) return 0;
    time |= static_cast<uint64_t>(from[i]) << (kTimeBits * static_cast<unsigned>(i));
  }
  return static_cast<int64_t>(time);
}

uint32_t read_machine(float from) {
  const bool fits = from >= 0 && from < static_cast<float>(1U << 24U);
  return fits ? static_cast<uint32_t>(from) : 0;
}

/// Reasons, from the most important to the least.
constexpr std::array kBySeverity{StopReason::not_finite, StopReason::error,  StopReason::interrupted,
                                 StopReason::accuracy,   StopReason::loss,   StopReason::steps,
                                 StopReason::seconds,    StopReason::epochs, StopReason::data};

}  // namespace

size_t notes_size(int members) { return kFixed + kPerMember * static_cast<size_t>(members); }

void write_note(const Note& note, int rank, std::span<float> to) {
  std::fill(to.begin(), to.end(), 0.0F);
  const auto loss = static_cast<float>(note.report.loss_sum);
  to[kLoss] = std::isfinite(loss) ? loss : 0.0F;
  to[kLossRest] = std::isfinite(loss) ? static_cast<float>(note.report.loss_sum - static_cast<double>(loss)) : 0.0F;
  to[kCorrect] = static_cast<float>(note.report.correct);
  to[kExamples] = static_cast<float>(note.report.examples);
  to[kContributors] = note.report.examples > 0 ? 1.0F : 0.0F;
  to[kRegroup] = note.regroup ? 1.0F : 0.0F;
  if (note.stop != StopReason::none) to[kStops + static_cast<size_t>(note.stop)] = 1.0F;
  float* times = to.data() + kFixed + kPerMember * static_cast<size_t>(rank);
  times[0] = note.times.load;
  times[1] = note.times.compute;
  times[2] = note.times.wait;
  times[3] = note.times.transfer;
  times[4] = static_cast<float>(note.report.examples);
  times[5] = static_cast<float>(note.stop);
  times[6] = note.times.until_exchange;
  write_time(note.times.entered, times + 7);
  write_time(note.times.left, times + 10);
  times[13] = static_cast<float>(note.times.machine);
}

void read_notes(std::span<const float> from, int members, Notes& notes) {
  notes.report.loss_sum = static_cast<double>(from[kLoss]) + static_cast<double>(from[kLossRest]);
  notes.report.correct = static_cast<uint64_t>(from[kCorrect]);
  notes.report.examples = static_cast<uint64_t>(from[kExamples]);
  notes.contributors = static_cast<int>(from[kContributors]);
  notes.regroup = from[kRegroup] > 0;
  notes.stop = StopReason::none;
  for (const StopReason reason : kBySeverity) {
    if (notes.stop == StopReason::none && from[kStops + static_cast<size_t>(reason)] > 0) notes.stop = reason;
  }
  notes.times.resize(static_cast<size_t>(members));
  notes.stopped_by = -1;
  const float* times = from.data() + kFixed;
  for (int rank = 0; rank < members; ++rank, times += kPerMember) {
    notes.times[static_cast<size_t>(rank)] = {times[0],
                                              times[1],
                                              times[2],
                                              times[3],
                                              times[4],
                                              times[6],
                                              read_time(times + 7),
                                              read_time(times + 10),
                                              read_machine(times[13])};
    const bool stops = notes.stop != StopReason::none && static_cast<StopReason>(times[5]) == notes.stop;
    if (stops && notes.stopped_by < 0) notes.stopped_by = rank;
  }
}

}  // namespace lockstep::allreduce
