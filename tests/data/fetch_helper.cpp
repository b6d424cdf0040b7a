// fetch_helper FOLDER MIRROR SIZE NAME MD5 [NAME MD5]...: one of several processes that fetch the same files at once.
#include <cstdio>
#include <exception>

#include "data/fetch.h"

int main(int argc, char** argv) {
  try {
    std::vector<lockstep::data::RemoteFile> files;
    for (int i = 4; i + 1 < argc; i += 2) files.push_back({argv[i], argv[i + 1], std::stoull(argv[3])});
    lockstep::data::fetch_files(files, argv[1], {argv[2]}, {}, "", {});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fetch_helper: %s\n", error.what());
    return 1;
  }
}
