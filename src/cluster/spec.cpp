#include "cluster/spec.h"
