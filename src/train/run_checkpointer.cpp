#include "train/run_checkpointer.h"

#include <fmt/format.h>

namespace lockstep::train {

CheckpointEvent RunCheckpointer::save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) {
  header_.state = state;
  if (fence_.group) header_.state.group = fence_.group();
  std::vector<std::span<const float>> arrays{snapshot.parameters};
  for (const optim::StateSlot& slot : snapshot.slots) arrays.emplace_back(slot.values);
  const checkpoint::CheckpointStore::Saved saved = store_.save(header_, arrays, [this, &state] {
    const std::string why = fence_.why_not ? fence_.why_not() : std::string();
    if (!why.empty() && fence_.warn)
      fence_.warn(fmt::format("the checkpoint of step {} is not kept: {}", state.step, why));
    return why.empty();
  });
  CheckpointEvent event;
  event.step = state.step;
  if (saved.bytes == 0) return event;
  event.file = saved.path;
  event.bytes = saved.bytes;
  return event;
}

void RunCheckpointer::take_over(checkpoint::TrainingState& state) {
  std::string path;
  if (store_.list().empty()) return;
  const checkpoint::TrainingState before = store_.load_newest(path).header.state;
  state.last_eval = before.last_eval;
  state.best_eval = before.best_eval;
  state.best_checkpoint = before.best_checkpoint;
  state.aside_seconds = before.aside_seconds;
}

}  // namespace lockstep::train
