// The trace of one process: its Tracer, and the file written from it (docs/trace.md). Owned by the session or the
// server's process; `write` may be called while other threads still trace, and writes the events so far.
#pragma once

#include <string>

#include "base/tracer.h"

namespace lockstep::observe {

class RoleTrace {
 public:
  /// `role` is the name shown to users: "worker:1"; "train" for a process that trains alone.
  explicit RoleTrace(std::string role) : role_(std::move(role)), training_(tracer_.track("training")) {}

  [[nodiscard]] base::Tracer& tracer() { return tracer_; }
  /// The track of the training thread.
  [[nodiscard]] base::TraceTrack& training() { return training_; }

  /// Writes the whole file at once. Returns the error; empty: none.
  [[nodiscard]] std::string write(const std::string& path) const;

 private:
  base::Tracer tracer_;
  std::string role_;
  base::TraceTrack& training_;
};

/// Throws IoError.
void write_trace(const std::string& path, const base::Tracer& tracer, const std::string& role);

}  // namespace lockstep::observe
