#include "help_format.h"

namespace verbatim::app {

std::string HelpFormat::make_help(const CLI::App* program, std::string name, CLI::AppFormatMode mode) const {
  std::string help = CLI::Formatter::make_help(program, std::move(name), mode);
  // Groups of options come with two empty lines between them.
  for (size_t at = 0; (at = help.find("\n\n\n", at)) != std::string::npos;) help.erase(at, 1);
  return help;
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0 || !option->nonpositional()) return {};
  // The names of the option's checks follow the type behind a colon.
  const std::string type = option->get_type_name();
  return " " + type.substr(0, type.find(':'));
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  const std::string value = option->get_default_str();
  return option->get_description() + (value.empty() ? "" : " [" + value + "]");
}

}  // namespace verbatim::app
