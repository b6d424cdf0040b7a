// One function per model; zoo.cpp lists them.
#pragma once

#include "lockstep/nn.h"

namespace lockstep::nn {

ModelDef softmax_regression();
ModelDef lenet();
ModelDef lenet_valid();
ModelDef alexnet();
ModelDef autoencoder();
ModelDef autoencoder_large();
ModelDef stn();
ModelDef stn_large();

}  // namespace lockstep::nn
