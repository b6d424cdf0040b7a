// The pictures that a run drew at its evaluations: pictures/NAME-STEP.png. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dash {

struct Picture {
  std::string file;  ///< "reconstruction-00000469.png"
  std::string name;  ///< "reconstruction"
  int64_t step = 0;
};

/// Returns the pictures of a run's folder, by name and step; without files whose name does not fit.
std::vector<Picture> pictures_of(const std::string& run);

/// Returns the bytes of one of these pictures, by its file name; nothing for any other name, a file that is too large,
/// or a link that leads out of the run's folder.
std::optional<std::string> read_picture(const std::string& run, const std::string& file);

}  // namespace lockstep::dash
