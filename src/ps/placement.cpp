#include "ps/placement.h"
