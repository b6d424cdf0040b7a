#include "train/run_checkpointer.h"

namespace lockstep::train {

CheckpointEvent RunCheckpointer::save(const checkpoint::TrainingState& state, const exchange::Snapshot& snapshot) {
  header_.state = state;
  std::vector<std::span<const float>> arrays{snapshot.parameters};
  for (const optim::StateSlot& slot : snapshot.slots) arrays.emplace_back(slot.values);
  const checkpoint::CheckpointStore::Saved saved = store_.save(header_, arrays);
  CheckpointEvent event;
  event.step = state.step;
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
