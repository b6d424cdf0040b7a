#include "transport/stream.h"
