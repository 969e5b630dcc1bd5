#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace verbatim::app {

// The front of CLI11 that commands are described with. It is compiled once, where a file that reads CLI11's
// own headers takes several seconds to compile.

/// Thrown to end the program with an exit code after all messages have been written.
struct Exit {
  int code;
};

/// A handle of an option or positional argument of a command; its copies stand for the same option. Each
/// setter returns the handle.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool required = true);
  /// Names the kind of value in the help, as FILE.
  Option type_name(const char* name);
  /// Puts the option under a heading of the help.
  Option group(const char* name);
  /// Refuses values below `low` or above `high`.
  Option range(int low, int high) { return range(int64_t{low}, int64_t{high}); }
  Option range(int64_t low, int64_t high);
  Option range(double low, double high);
  Option one_of(std::initializer_list<int> values);
  /// Shows the value that the variable has now as the default in the help.
  Option show_default();
  /// Shows a text as the default in the help.
  Option show_default(const char* text);
  /// Refuses the option beside another one.
  Option excludes(Option other);
  /// Takes one value each time the option is given, so that an argument behind it is not another value of it.
  Option one_value();

 private:
  CLI::Option* option_;
};

/// A handle of the program, a command or a group of commands; its copies stand for the same one. Variables
/// that options write to must live until the command line has been read.
class Command {
 public:
  explicit Command(CLI::App* command) : command_(command) {}

  /// Adds a command with options and work of its own.
  Command add_command(const char* name, const char* what);
  /// Adds a group of commands, one of which has to be given.
  Command add_group(const char* name, const char* what);
  /// Adds an option that writes its value to a variable: a std::string, an int32_t, int64_t, uint64_t, float
  /// or double, or a std::vector of std::string, which takes a value each time. The names have commas
  /// between; one without a dash is a positional argument.
  template <typename T>
  Option add_option(const char* names, T& value, const char* what);
  /// Adds an option that takes several values with commas between and writes them to a std::vector of
  /// std::string, int32_t, int64_t, float or double.
  template <typename Values>
  Option add_list(const char* names, Values& values, const char* what);
  /// Adds an option without a value that sets a variable to true.
  Option add_flag(const char* names, bool& value, const char* what);
  /// Adds an option without a value that does something while the command line is read, before the command's
  /// own work.
  Option add_action(const char* names, std::function<void()> action, const char* what);
  /// Finds an option that has been added.
  Option option(const char* name) const;
  /// Tells whether an option was on the command line.
  bool given(const char* name) const;
  /// Sets the last lines of the help.
  void footer(const char* text);
  /// Sets the command's work, which runs when the command line has been read.
  void callback(std::function<void()> work);

 private:
  CLI::App* command_;
};

}  // namespace verbatim::app
