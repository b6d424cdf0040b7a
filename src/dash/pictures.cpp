#include "dash/pictures.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "dash/run_files.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestPicture = uint64_t{1} << 24;
constexpr std::string_view kEnd = ".png";

std::optional<Picture> picture_called(const std::string& file) {
  const size_t dash = file.rfind('-');
  if (dash == std::string::npos || dash == 0 || !file.ends_with(kEnd)) return std::nullopt;
  Picture picture{file, file.substr(0, dash), 0};
  const char* const begin = file.data() + dash + 1;
  const char* const end = file.data() + file.size() - kEnd.size();
  const auto [rest, error] = std::from_chars(begin, end, picture.step);
  const bool fits = error == std::errc() && rest == end && picture.step >= 0;
  return fits ? std::optional(picture) : std::nullopt;
}

}  // namespace

std::vector<Picture> pictures_of(const std::string& run) {
  std::vector<Picture> pictures;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run + "/pictures", ignored)) {
    if (std::optional<Picture> one = picture_called(entry.path().filename().string())) {
      pictures.push_back(std::move(*one));
    }
  }
  std::sort(pictures.begin(), pictures.end(), [](const Picture& a, const Picture& b) {
    return std::tie(a.name, a.step, a.file) < std::tie(b.name, b.step, b.file);
  });
  return pictures;
}

std::optional<std::string> read_picture(const std::string& run, const std::string& file) {
  const std::vector<Picture> pictures = pictures_of(run);
  const std::string path = run + "/pictures/" + file;
  if (std::none_of(pictures.begin(), pictures.end(), [&](const Picture& one) { return one.file == file; }) ||
      !lies_within(path, run)) {
    return std::nullopt;
  }
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestPicture);
    return std::string(bytes.begin(), bytes.end());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::dash
