#include "text_io.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/error.h"

namespace verbatim::app {

std::string read_text(const std::string& path) {
  std::ostringstream contents;
  if (path == "-") {
    contents << std::cin.rdbuf();
    return contents.str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("cannot open the file {}", path);
  if (std::filesystem::is_directory(path)) bad_input("{} is a folder: name a file", path);
  contents << file.rdbuf();
  return contents.str();
}

void write_out(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || written != text.size()) {
    fail(ErrorKind::kMachine, "cannot write to standard output: is the disk full?");
  }
}

std::string one_line(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace verbatim::app
