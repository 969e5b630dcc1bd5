#include "command_line.h"

#include <CLI/CLI.hpp>

#include <utility>
#include <vector>

namespace verbatim::app {

Option Option::required(bool required) {
  option_->required(required);
  return *this;
}

Option Option::type_name(const char* name) {
  option_->type_name(name);
  return *this;
}

Option Option::group(const char* name) {
  option_->group(name);
  return *this;
}

Option Option::range(int64_t low, int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::range(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::one_of(std::initializer_list<int> values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::show_default(const char* text) {
  option_->default_str(text);
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::one_value() {
  option_->allow_extra_args(false);
  return *this;
}

Command Command::add_command(const char* name, const char* what) {
  CLI::App* const command = command_->add_subcommand(name, what);
  command->group("Commands");
  command->set_help_flag("-h,--help", "Show this and exit");
  return Command(command);
}

Command Command::add_group(const char* name, const char* what) {
  const Command group = add_command(name, what);
  group.command_->require_subcommand(1);
  return group;
}

template <typename T>
Option Command::add_option(const char* names, T& value, const char* what) {
  return Option(command_->add_option(names, value, what));
}

template <typename Values>
Option Command::add_list(const char* names, Values& values, const char* what) {
  return Option(command_->add_option(names, values, what)->delimiter(',')->allow_extra_args(false));
}

template Option Command::add_option(const char*, std::string&, const char*);
template Option Command::add_option(const char*, int32_t&, const char*);
template Option Command::add_option(const char*, int64_t&, const char*);
template Option Command::add_option(const char*, uint64_t&, const char*);
template Option Command::add_option(const char*, float&, const char*);
template Option Command::add_option(const char*, double&, const char*);
template Option Command::add_option(const char*, std::vector<std::string>&, const char*);
template Option Command::add_list(const char*, std::vector<std::string>&, const char*);
template Option Command::add_list(const char*, std::vector<int32_t>&, const char*);
template Option Command::add_list(const char*, std::vector<int64_t>&, const char*);
template Option Command::add_list(const char*, std::vector<float>&, const char*);
template Option Command::add_list(const char*, std::vector<double>&, const char*);

Option Command::add_flag(const char* names, bool& value, const char* what) {
  return Option(command_->add_flag(names, value, what));
}

Option Command::add_action(const char* names, std::function<void()> action, const char* what) {
  return Option(command_->add_flag_callback(names, std::move(action), what));
}

Option Command::option(const char* name) const {
  return Option(command_->get_option(name));
}

bool Command::given(const char* name) const {
  return command_->count(name) > 0;
}

void Command::footer(const char* text) {
  command_->footer(text);
}

void Command::callback(std::function<void()> work) {
  command_->callback(std::move(work));
}

}  // namespace verbatim::app
