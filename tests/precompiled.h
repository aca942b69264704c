// Headers that most tests parse first, parsed once a build (cmake/DopplerTargets.cmake). No test includes it.
#pragma once

#include <gtest/gtest.h>

#include "base/precompiled.h"
