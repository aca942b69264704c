// As precompiled.h, for layers whose sources look inside a Json.
#pragma once

#include "base/json.h"
#include "base/precompiled.h"
