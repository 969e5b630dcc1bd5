#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/builtin/beneath.h"
#include "agent/builtin/builtin_tools.h"
#include "agent/tools/instant_tool.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr size_t kMostFileBytes = 1 << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kBadInput, fmt::format("{}: {}", shown(path, kShownBytes), why));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

FileDescriptor open_by_steps(int root, const std::string& path) {
  FileDescriptor folder(fcntl(root, F_DUPFD_CLOEXEC, 0));
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, slash - at);
    at = slash + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") refuse(path, "the path leaves the folder");
    const bool last = path.find_first_not_of("/.", slash) == std::string::npos;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (last ? 0 : O_DIRECTORY);
    FileDescriptor next(openat(folder.number(), name.c_str(), flags));
    if (next.number() < 0) {
      refuse(path, errno == ELOOP || errno == ENOTDIR ? "the path goes through a link or a file"
                                                      : std::strerror(errno));
    }
    folder = std::move(next);
  }
  return folder;
}

FileDescriptor open_beneath(int root, const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) {
    refuse(path, "give a path within the folder");
  }
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  constexpr int kTries = 16;  // EAGAIN: something was renamed on the way
  for (int i = 0; i < kTries; ++i) {
    const auto opened = static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
    if (opened >= 0) return FileDescriptor(opened);
    if (errno == ENOSYS || errno == EPERM) return open_by_steps(root, path);
    if (errno != EAGAIN) break;
  }
  refuse(path, errno == EXDEV ? "the path leaves the folder" : std::strerror(errno));
}

std::string read_beneath(int root, const std::string& path) {
  const FileDescriptor file = open_beneath(root, path);
  struct stat about = {};
  if (fstat(file.number(), &about) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse(path, "it is no file");
  std::string text;
  char buffer[16384];
  while (text.size() <= kMostFileBytes) {
    const ssize_t count = read(file.number(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path, std::strerror(errno));
    if (count == 0) return valid_utf8(text);
    text.append(buffer, static_cast<size_t>(count));
  }
  refuse(path, fmt::format("it has more than {} bytes", kMostFileBytes));
}

ToolEntry read_file_tool(Loop& loop, const std::filesystem::path& root) {
  auto folder = std::make_shared<FileDescriptor>(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder->number() < 0)
    refuse(root.string(), std::string("cannot open the folder: ") + std::strerror(errno));
  ToolDeclaration declaration{
      .name = "read_file",
      .description = "The text of a file, by its path within the folder that may be read.",
      .parameters = Json::parse(R"({"type": "object", "properties": {"path": {"type": "string"}},
                                    "required": ["path"], "additionalProperties": false})")};
  const auto compute = [folder](const Json& arguments) -> Json {
    return read_beneath(folder->number(), arguments["path"].get<std::string>());
  };
  return {.tool = std::make_shared<InstantTool>(loop, std::move(declaration), compute),
          .policy = Policy::kAllow,
          .idempotent = true,
          .limits = {.retries = 0}};
}

}  // namespace verbatim::agent
