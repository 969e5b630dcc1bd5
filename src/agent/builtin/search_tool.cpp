#include <fmt/format.h>
#include <sqlite3.h>

#include <cctype>
#include <cstdio>
#include <fstream>

#include "agent/builtin/builtin_tools.h"
#include "agent/tools/instant_tool.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kMostWords = 32;          // of a query
constexpr int kMostSteps = 20'000'000;  // of SQLite's machine: about a second
constexpr int kStepsPerCheck = 100'000;
constexpr size_t kLongestLine = 16 << 20;
constexpr size_t kShownPath = 100;

/// A corpus in SQLite, in a file or in memory.
class Corpus {
 public:
  explicit Corpus(const std::filesystem::path& path) : path_(shown(path.string(), kShownPath)) {
    std::ifstream file(path, std::ios::binary);
    char head[16] = {};
    file.read(head, sizeof(head) - 1);
    if (file.bad() || !std::filesystem::is_regular_file(path)) fail("cannot read the corpus");
    if (std::string_view(head).starts_with("SQLite format")) {
      open(path.c_str(), SQLITE_OPEN_READONLY);
      statement("SELECT title, text FROM documents LIMIT 0");  // throws if it is another database
    } else {
      open(":memory:", SQLITE_OPEN_READWRITE);
      file.clear();
      file.seekg(0);
      fill(file);
    }
    sqlite3_progress_handler(
        database_.get(), kStepsPerCheck, [](void* left) { return --*static_cast<int*>(left) < 0 ? 1 : 0; },
        &checks_left_);
  }

  Json search(const std::string& query, int64_t count) {
    checks_left_ = kMostSteps / kStepsPerCheck;
    const std::string words = match_of(query);
    if (words.empty()) throw Error(ErrorKind::kBadInput, "the query has no words");
    // A page of that very title comes first.
    const Statement found = statement(
        "SELECT title, text FROM documents WHERE documents MATCH ?1 "
        "ORDER BY lower(title) = lower(?2) DESC, bm25(documents, 5.0, 1.0) LIMIT ?3");
    sqlite3_bind_text(found.get(), 1, words.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(found.get(), 2, query.c_str(), static_cast<int>(query.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(found.get(), 3, count);
    std::string text;
    int step = 0;
    while ((step = sqlite3_step(found.get())) == SQLITE_ROW) {
      const std::string title = column(found, 0);
      const std::string body = column(found, 1);
      if (!text.empty()) text += "\n\n";
      text += title + ": " + body.substr(0, body.find("\n\n"));
    }
    if (step != SQLITE_DONE) fail("the search ended with an error");
    if (text.empty()) return "Nothing was found for \"" + query + "\".";
    return text;
  }

 private:
  struct Closing {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Closing>;

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::kBadInput, fmt::format("{}: {}{}", path_, message,
                                                  database_ && sqlite3_errcode(database_.get()) > SQLITE_OK &&
                                                          sqlite3_errcode(database_.get()) < SQLITE_ROW
                                                      ? std::string(": ") + sqlite3_errmsg(database_.get())
                                                      : std::string()));
  }

  void open(const char* name, int flags) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(name, &opened, flags, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) fail("cannot open the corpus");
  }

  Statement statement(const char* sql) const {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql, -1, &made, nullptr) != SQLITE_OK) {
      fail("it is no corpus (a table `documents` with `title` and `text`)");
    }
    return Statement(made);
  }

  void run(const char* sql) const {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      fail("cannot make the index");
  }

  void fill(std::istream& lines) const {
    run("CREATE VIRTUAL TABLE documents USING fts5(title, text, tokenize = 'porter unicode61'); BEGIN");
    const Statement insert = statement("INSERT INTO documents(title, text) VALUES (?1, ?2)");
    int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::optional<Json> json = line.size() > kLongestLine ? std::nullopt : parse_json(line);
      const bool right = json && json->is_object() && json->contains("title") &&
                         (*json)["title"].is_string() && json->contains("text") &&
                         (*json)["text"].is_string();
      if (!right) fail(fmt::format("line {} is no JSON object with `title` and `text`", number));
      for (const auto& [place, key] : {std::pair{1, "title"}, {2, "text"}}) {
        const auto& text = (*json)[key].get_ref<const std::string&>();
        sqlite3_bind_text(insert.get(), place, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
      }
      if (sqlite3_step(insert.get()) != SQLITE_DONE) fail("cannot fill the index");
      sqlite3_reset(insert.get());
    }
    run("COMMIT");
  }

  /// The words of a query, any of which may be found; quoted, so that none is an operator.
  static std::string match_of(const std::string& query) {
    std::string match;
    std::string word;
    int words = 0;
    const auto end_word = [&] {
      if (!word.empty() && words++ < kMostWords) match += (match.empty() ? "\"" : " OR \"") + word + "\"";
      word.clear();
    };
    for (const char c : query) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || byte >= 0x80) {
        word += c;
      } else {
        end_word();
      }
    }
    end_word();
    return match;
  }

  static std::string column(const Statement& found, int place) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(found.get(), place));
    return text ? std::string(text) : std::string();
  }

  std::string path_;
  std::unique_ptr<sqlite3, Closing> database_;
  int checks_left_ = 1 << 30;
};

}  // namespace

ToolEntry search_tool(Loop& loop, const std::filesystem::path& path) {
  auto corpus = std::make_shared<Corpus>(path);
  ToolDeclaration declaration{
      .name = "search",
      .description = "The first paragraph of the page that fits a name or words best, or of several.",
      .parameters = Json::parse(R"({"type": "object", "properties": {"query": {"type": "string"},
                                     "count": {"type": "integer", "minimum": 1, "maximum": 20}},
                                    "required": ["query"], "additionalProperties": false})")};
  const auto compute = [corpus](const Json& arguments) -> Json {
    return corpus->search(arguments["query"].get<std::string>(), arguments.value("count", int64_t{1}));
  };
  return {.tool = std::make_shared<InstantTool>(loop, std::move(declaration), compute),
          .policy = Policy::kAllow,
          .idempotent = true,
          .limits = {.retries = 0}};
}

}  // namespace verbatim::agent
