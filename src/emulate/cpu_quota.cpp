#include "emulate/cpu_quota.h"
