#include "serve/context.h"

namespace verbatim::serve {

void Context::with_model(const std::shared_ptr<Call>& call, std::string_view name,
                         const std::function<void(const std::shared_ptr<LoadedModel>&)>& work) const {
  models.use(
      name,
      [call, work](const std::shared_ptr<LoadedModel>& model) {
        if (!call->cancelled()) guarded(*call, [&] { work(model); });
      },
      [call](const HttpError& error) { call->fail(error); });
}

}  // namespace verbatim::serve
