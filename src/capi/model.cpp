// Models: loading, tokens, scores.

#include "capi/call.h"
#include "capi/handles.h"
#include "capi/options.h"

using namespace verbatim;
using namespace verbatim::capi;

extern "C" {

verbatim_status verbatim_model_load(const char* path, const verbatim_load_options* options,
                                    verbatim_model** model) {
  return call([&] {
    cleared(model, "the place for the model");
    need(path, "the path");
    open<ModelObject>(model, Model::load(path, options_of(options)));
  });
}

verbatim_status verbatim_model_close(verbatim_model* model) {
  return call([&] {
    if (model != nullptr) take_back(model, Kind::kModel, "model");
  });
}

verbatim_status verbatim_model_describe(verbatim_model* handle, verbatim_model_info* info, size_t size) {
  return call([&] {
    StructToFill place(info, size);
    const Model model = object_of<ModelObject>(handle)->model;
    place = {.context = model.context(),
             .vocab_size = model.vocab_size(),
             .has_vocabulary = model.has_vocabulary() ? 1 : 0,
             .bos_token = model.bos_token().value_or(-1)};
  });
}

verbatim_status verbatim_model_warning(verbatim_model* model, size_t index, const char** warning) {
  return call([&] {
    cleared(warning, "the place for the warning");
    const auto object = object_of<ModelObject>(model);
    const std::vector<std::string>& warnings = object->model.warnings();
    if (index < warnings.size()) *warning = warnings[index].c_str();
  });
}

verbatim_status verbatim_model_eos_tokens(verbatim_model* model, int32_t* tokens, size_t capacity,
                                          size_t* count) {
  return call([&] {
    cleared(count, "the place for the count");
    const auto object = object_of<ModelObject>(model);
    write_out<int32_t>(object->model.eos_tokens(), tokens, capacity, count);
  });
}

verbatim_status verbatim_model_encode(verbatim_model* model, const char* text, size_t length, int32_t add_bos,
                                      int32_t* tokens, size_t capacity, size_t* count) {
  return call([&] {
    cleared(count, "the place for the count");
    const auto object = object_of<ModelObject>(model);
    const std::vector<int32_t> own = object->model.encode(text_of(text, length, "the text"), add_bos != 0);
    write_out<int32_t>(own, tokens, capacity, count);
  });
}

verbatim_status verbatim_model_decode(verbatim_model* model, const int32_t* tokens, size_t count, char* text,
                                      size_t capacity, size_t* length) {
  return call([&] {
    cleared(length, "the place for the length");
    const auto object = object_of<ModelObject>(model);
    const std::string own = object->model.decode(tokens_of(tokens, count));
    write_out<char>({own.c_str(), own.size() + 1}, text, capacity, length);
    --*length;  // the NUL
  });
}

verbatim_status verbatim_model_find_token(verbatim_model* model, const char* piece, int32_t* token) {
  return call([&] {
    need(token, "the place for the token") = -1;
    const auto object = object_of<ModelObject>(model);
    *token = object->model.find_token(&need(piece, "the piece")).value_or(-1);
  });
}

verbatim_status verbatim_model_score(verbatim_model* model, const int32_t* tokens, size_t count,
                                     const verbatim_score_options* options, verbatim_result** result) {
  return call([&] {
    cleared(result, "the place for the result");
    const Model scorer = object_of<ModelObject>(model)->model;
    GenerateResult scored;
    scored.logprobs = score(scorer, list_of(tokens, count, "the tokens"), options_of(options));
    scored.tokens.assign(tokens + 1, tokens + count);
    open<ResultObject>(result, std::move(scored));
  });
}

}  // extern "C"
