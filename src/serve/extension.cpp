#include "serve/extension.h"

namespace verbatim::serve {

namespace {

constexpr Field kExtensionTable[] = {
    {.name = "recipe",
     .type = FieldType::kText,
     .note = "the recipe to decode with, one that the server offers"},
    {.name = "speculation",
     .type = FieldType::kBoolean,
     .note = "false: decodes without drafts; of a lossless recipe the same bytes"},
    {.name = "origins",
     .type = FieldType::kBoolean,
     .note =
         "true: each chunk of a stream of chat completions or completions says where each of its tokens came "
         "from; refused elsewhere"},
};

}  // namespace

const FieldTable kExtensionFields = kExtensionTable;

Extension read_extension(const Fields& fields, bool tells_origins) {
  const std::optional<Fields> own = fields.object("verbatim", kExtensionFields);
  if (!own) return {};
  if (!tells_origins && own->boolean("origins").value_or(false)) {
    own->refuse("origins", "is for streams of /v1/chat/completions and /v1/completions", "unsupported_value");
  }
  return {.present = true,
          .recipe = own->text("recipe").value_or(""),
          .speculation = own->boolean("speculation").value_or(true),
          .origins = own->boolean("origins").value_or(false)};
}

}  // namespace verbatim::serve
