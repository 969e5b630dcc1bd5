#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace verbatim {

/// What may be read besides a regular file.
enum class Readable {
  kRegularFile,  ///< nothing: what a program opens by itself must not make it wait
  kPipeToo,      ///< a pipe, which a person can name in place of a text: `-f <(command)`
};

/// Opens a file for reading and returns its descriptor, which the caller closes. Every file that is read is
/// opened here. It never waits: something that is no regular file is refused before it is opened. Throws
/// Error(kBadInput) naming the file, or Error(kMachine) when the process may open no more files.
int open_input(const std::filesystem::path& path, Readable readable = Readable::kRegularFile);

/// Reads the whole of a file that may hold `most` bytes. Throws like open_input(), and Error(kBadInput) as
/// soon as there are more bytes.
std::string read_input(const std::filesystem::path& path, size_t most,
                       Readable readable = Readable::kRegularFile);

/// Reads an open descriptor to its end. Throws Error(kBadInput) naming `where` when that fails, or as soon as
/// there are more than `most` bytes.
std::string read_descriptor(int descriptor, size_t most, const std::string& where);

}  // namespace verbatim
