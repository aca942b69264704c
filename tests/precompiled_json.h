// As precompiled.h, for tests whose sources look inside a Json.
#pragma once

#include "base/json.h"
#include "precompiled.h"
