#include "collective/in_process.h"
