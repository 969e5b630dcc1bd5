#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "verbatim/error.h"

namespace verbatim::test {

/// Expects work() to throw Error(kBadInput) with a message of one line that holds every part.
template <typename Work>
void expect_bad_input(Work&& work, std::initializer_list<std::string> parts) {
  try {
    work();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 600u) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
    }
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

}  // namespace verbatim::test
