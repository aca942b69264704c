// Headers that most golden tests parse first, parsed once a build (cmake/DopplerTargets.cmake). No test includes it.
#pragma once

#include <gtest/gtest.h>

#include "base/precompiled.h"
#include "engine/stream_answer.h"
#include "golden_helpers.h"
#include "model/device_model.h"
