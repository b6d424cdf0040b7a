// The trace of one process: its Tracer, and the file that it becomes (docs/trace.md). The session or the server's
// process owns it; `write` may be called while others still trace: what there is is written.
#pragma once

#include <string>

#include "base/tracer.h"

namespace lockstep::observe {

class RoleTrace {
 public:
  /// `role` as people know it: "worker:1"; "train" for one that trains alone.
  explicit RoleTrace(std::string role) : role_(std::move(role)), training_(tracer_.track("training")) {}

  [[nodiscard]] base::Tracer& tracer() { return tracer_; }
  /// The track of the training thread.
  [[nodiscard]] base::TraceTrack& training() { return training_; }

  /// The file appears whole. Gives what went wrong; empty: nothing did.
  [[nodiscard]] std::string write(const std::string& path) const;

 private:
  base::Tracer tracer_;
  std::string role_;
  base::TraceTrack& training_;
};

/// Throws IoError.
void write_trace(const std::string& path, const base::Tracer& tracer, const std::string& role);

}  // namespace lockstep::observe
