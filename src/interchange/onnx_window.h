// Importers of the ONNX operators over images; their lines are in onnx_import_ops.cpp. Private to this room.
#pragma once

#include "interchange/onnx_reader.h"

namespace lockstep::interchange {

void import_conv(NodeReader& r);
void import_max_pool(NodeReader& r);
void import_average_pool(NodeReader& r);
void import_global_average_pool(NodeReader& r);
void import_global_max_pool(NodeReader& r);
void import_lrn(NodeReader& r);
void import_affine_grid(NodeReader& r);
void import_grid_sample(NodeReader& r);

}  // namespace lockstep::interchange
