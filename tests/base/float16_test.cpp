#include "base/float16.h"

#include <gtest/gtest.h>

TEST(Placeholder, Builds) {}
