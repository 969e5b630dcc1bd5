#include "work_folder.h"

#include <system_error>

#include "base/error.h"
#include "base/input_file.h"
#include "base/json_fields.h"
#include "base/output_file.h"

namespace verbatim::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNote = "progress.json";

fs::path folder_of(const fs::path& file) {
  return file.string() + ".work";
}

/// Prepares the folder and returns its path.
fs::path prepared(const fs::path& file, bool resume) {
  const fs::path folder = folder_of(file);
  std::error_code failure;
  const bool noted = fs::exists(folder / kNote, failure);
  if (!resume || !noted) fs::remove_all(folder, failure);
  if (!failure) fs::create_directory(folder, failure);
  if (failure) bad_input("cannot make the folder {}: {}", folder.string(), failure.message());
  return folder;
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& file, const std::string& identity, bool resume)
    : path_(prepared(file, resume)),
      identity_(identity),
      streams_(path_ / "streams"),
      even_(path_ / "gradients-0"),
      odd_(path_ / "gradients-1"),
      sensitivities_(path_ / "sensitivities") {
  const fs::path note = path_ / kNote;
  std::error_code ignored;
  if (!fs::exists(note, ignored)) return;
  constexpr size_t kMost = 1 << 20;
  const nlohmann::json json = parse_json(read_input(note, kMost), 2, note.string());
  const JsonFields fields(json, note.string());
  if (fields.text("identity") != identity_) {
    bad_input(
        "{} belongs to other work: another model or text, or other settings; name another file, or leave out "
        "--resume to begin anew",
        path_.string());
  }
  progress_.forward = fields.required_integer("forward");
  progress_.backward = fields.required_integer("backward");
  progress_.loss = json.value("loss", 0.0);
}

void WorkFolder::note(const Progress& progress) {
  for (WorkFile* const file : {&streams_, &even_, &odd_, &sensitivities_}) file->sync();
  progress_ = progress;
  const nlohmann::ordered_json json = {{"identity", identity_},
                                       {"forward", progress.forward},
                                       {"backward", progress.backward},
                                       {"loss", progress.loss}};
  const fs::path next = path_ / "progress.next";
  std::error_code failure;
  fs::remove(next, failure);
  OutputFile out(next);
  out.write(json.dump());
  out.finish();
  fs::rename(next, path_ / kNote, failure);
  if (failure) fail(ErrorKind::kMachine, "cannot write {}: {}", next.string(), failure.message());
}

void WorkFolder::remove() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace verbatim::train
