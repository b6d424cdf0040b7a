// Exporters of the image ops that ONNX expresses differently; their lines are in onnx_export_ops.cpp. Private to this
// room.
#pragma once

#include "interchange/onnx_writer.h"

namespace lockstep::interchange {

void export_lrn(NodeWriter& w);
void export_affine_grid(NodeWriter& w);
void export_bilinear_sample(NodeWriter& w);

}  // namespace lockstep::interchange
