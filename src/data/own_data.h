// A user's own data as a data set: .npz (numpy) or .csv (plain or gzip).
//
// npz: X_train, y_train, X_test, y_test and optionally X_valid, y_valid; also x_train, or train_images with
// train_labels, and so on. If the file has one pair only (X and y, x and y, images and labels, data and target, the
// pair of X_train, or a single array), its last part becomes the test split: `test_size` examples, or one in six. If
// the examples are sorted by class, the test split is the same number spread evenly. Images have shape (n,c,h,w),
// (n,h,w), or (n,f): flat values become images of the expected shape if their number fits, else of 1x1xf. Bytes are
// 0..255 and scaled to 0..1; floats are not scaled.
//
// CSV: see csv.h. Whole numbers 0..255 that fill the expected image (of more than one row) are pixels, read as bytes.
//
// The number of classes is the largest label plus one, at least 2. Without labels there are no classes. Free functions,
// any thread; DataError or IoError names the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/csv.h"
#include "data/dataset.h"
#include "data/npz.h"

namespace lockstep::data {

struct OwnDataOptions {
  ImageShape expected = {};       ///< image shape the model is made for; empty: unknown
  std::string label_column = {};  ///< for CSV: see csv.h
  int64_t test_size = 0;          ///< used if the file has no test split; 0: one example in six
};

/// Returns true for a path of own data rather than a name: it ends in .npz, .csv or .csv.gz, or contains a '/'.
bool is_own_data(std::string_view name);
/// Returns true if the path's name is that of CSV, data with a label column.
bool has_columns(std::string_view path);

/// Returns the table's rows as examples: as images of the expected shape if their number fits, else of 1x1xf; pixels as
/// bytes.
Examples examples_of(CsvTable table, const ImageShape& expected);

/// The arrays of an npz file that hold images and their labels; empty if there are none.
struct ArrayNames {
  std::string images;
  std::string labels;
};
/// Chooses by the same names as for training: the test data if there is some, else data that is not split, else the
/// rest.
ArrayNames arrays_to_predict(const Npz& npz);

Dataset read_own_data(const std::string& path, const OwnDataOptions& options);

/// Parses content in memory; `name` stands for the file's name and decides the format.
Dataset parse_own_data(std::span<const uint8_t> file, const std::string& name, const OwnDataOptions& options);

}  // namespace lockstep::data
