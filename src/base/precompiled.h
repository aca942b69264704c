// The headers that most sources parse first, parsed once a build (cmake/DopplerTargets.cmake). No source includes this
// file: each names the headers it needs, as builds without DOPPLER_BATCHES have no precompiled header.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
