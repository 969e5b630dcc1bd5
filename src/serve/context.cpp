#include "serve/context.h"

namespace verbatim::serve {

void Context::with_model(const std::shared_ptr<Call>& call, std::string_view name,
                         const std::function<void(const std::shared_ptr<LoadedModel>&)>& work) const {
  models.use(
      name,
      [call, work](const std::shared_ptr<LoadedModel>& model) {
        if (call->cancelled()) {
          call->fail({503, "the request was cancelled"});
        } else {
          guarded(*call, [&] { work(model); });
        }
      },
      [call](const HttpError& error) { call->fail(error); });
}

void Context::compute(const std::shared_ptr<Call>& call, std::function<void()> work) const {
  if (computing.waiting() >= std::max<int64_t>(1, options.max_queue)) {
    throw HttpError(429, "too many requests wait to be computed: try again later", {}, "queue_full");
  }
  go_on_computing(call, std::move(work));
}

void Context::go_on_computing(const std::shared_ptr<Call>& call, std::function<void()> work) const {
  computing.post([call, work = std::move(work)] {
    guarded(*call, [&] {
      check_under_way(*call);
      work();
    });
  });
}

}  // namespace verbatim::serve
