#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace verbatim::app {

/// Help for people: an option's name, the kind of value it takes, what it does and its default. The ranges of
/// values are left to the error messages.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(32); }
  std::string make_help(const CLI::App* program, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace verbatim::app
