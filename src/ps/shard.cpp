#include "ps/shard.h"
