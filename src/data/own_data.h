// A user's own data as a data set: .npz (numpy) or .csv (plain or gzip).
//
// npz: X_train, y_train, X_test, y_test and, if there is one, X_valid, y_valid; also x_train and train_images with
// train_labels, and so on. Where the file has one pair only (X and y, x and y, images and labels, data and target, the
// pair of X_train, or a single array), the last part becomes the test split: `test_size` examples, or one in six. Where
// the examples are sorted by class, the test split is as many spread evenly. Images of shape (n,c,h,w), (n,h,w), or
// (n,f): flat values become images of the expected shape when they are as many, else of 1x1xf. Bytes are 0..255 and
// scaled to 0..1, floats are taken as they are.
//
// CSV: csv.h. Whole numbers 0..255 that fill the expected image (of more than one row) are pixels, taken as bytes.
//
// Classes are one more than the largest label, at least 2. Without labels they are empty. Free functions, any thread;
// DataError or IoError names the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/npz.h"

namespace lockstep::data {

struct OwnDataOptions {
  ImageShape expected = {};       ///< what the model is made for; empty: unknown
  std::string label_column = {};  ///< of CSV: see csv.h
  int64_t test_size = 0;          ///< where the file has no test split of its own; 0: one example in six
};

/// Whether this is a path of own data rather than a name: it ends in .npz, .csv or .csv.gz, or has a '/'.
bool is_own_data(std::string_view name);
/// Whether it is CSV by its name: data with a label column.
bool has_columns(std::string_view path);

/// The arrays of an npz file that hold images and their labels; empty where there are none.
struct ArrayNames {
  std::string images;
  std::string labels;
};
/// By the same names as for training: the test data where there is some, else what is not split, else the others.
ArrayNames arrays_to_predict(const Npz& npz);

Dataset read_own_data(const std::string& path, const OwnDataOptions& options);

/// The same for content in memory; `name` is what the file would be called and decides the format.
Dataset parse_own_data(std::span<const uint8_t> file, const std::string& name, const OwnDataOptions& options);

}  // namespace lockstep::data
