#include "serve/answer.h"

#include <prometheus/registry.h>

#include <future>

#include "serve/service_support.h"

namespace verbatim::serve {
namespace {

/// Counts what it is told, and throws at pieces if it is to.
class CountingWriter : public ReplyWriter {
 public:
  struct Counts {
    std::atomic<int> pieces = 0;
    std::atomic<int> ends = 0;
    std::atomic<int> completions = 0;
    std::atomic<int> error = 0;  // the status
  };
  CountingWriter(Counts& counts, bool throws) : counts_(counts), throws_(throws) {}

  void on_piece(size_t, TokenStream::Piece&&) override {
    ++counts_.pieces;
    if (throws_) throw std::runtime_error("a piece that cannot be written");
  }
  void on_end(size_t, GenerateResult&&) override { ++counts_.ends; }
  void on_complete() override { ++counts_.completions; }
  void on_error(const HttpError& error) override { counts_.error = error.status; }

 private:
  Counts& counts_;
  const bool throws_;
};

/// An answer whose choice is looked at only when its engine is done with it.
class LateAnswer : public ::testing::Test {
 protected:
  /// `before` is called when the choice is done, before anything is taken of it.
  void run(bool throws, const std::function<void(Call&)>& before = {}) {
    std::promise<void> go;
    workers_.post([gone = go.get_future().share()] { gone.wait(); });
    std::promise<void> ended;
    auto call = std::make_shared<Call>(std::make_shared<test::FakeExchange>("POST", "/v1/completions", ""),
                                       std::chrono::steady_clock::now() + std::chrono::minutes(10),
                                       [&ended] { ended.set_value(); });
    std::vector<Request> requests(1);
    requests[0].prompt = test::shared_model().encode("def f(x):");
    requests[0].options.max_tokens = 4;
    Answers(workers_, 8)
        .start(call, model_, std::move(requests), std::make_unique<CountingWriter>(counts_, throws));
    while (model_->engine.stats().waiting + model_->engine.stats().running > 0) std::this_thread::yield();
    if (before) before(*call);
    call.reset();
    go.set_value();
    // The answer lets go of its call and its choices, whatever happened.
    EXPECT_EQ(ended.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    EXPECT_EQ(model_->counts->choices, 0);
  }

  CountingWriter::Counts counts_;
  prometheus::Registry registry_;
  Workers workers_{1};
  std::shared_ptr<LoadedModel> model_ = [this] {
    auto model = std::make_shared<LoadedModel>("target", test::shared_model(),
                                               EngineOptions{.max_batch = 1, .capacity = 64, .threads = 1});
    model->counts = std::make_shared<ModelCounts>(registry_, "target");
    return model;
  }();
};

TEST_F(LateAnswer, EndsWhenAPieceCannotBeWritten) {
  run(true);
  EXPECT_EQ(counts_.pieces, 1);
  EXPECT_EQ(counts_.ends, 0);
  EXPECT_EQ(counts_.completions, 0);
  EXPECT_EQ(counts_.error, 500);
}

TEST_F(LateAnswer, IsNotToldAsWholeWhenItWasCancelledWhilePiecesWaited) {
  run(false, [](Call& call) { call.cancel(); });
  EXPECT_EQ(counts_.pieces, 0);
  EXPECT_EQ(counts_.ends, 0);
  EXPECT_EQ(counts_.completions, 0);
  EXPECT_EQ(counts_.error, 503);
}

TEST_F(LateAnswer, IsToldWholeOtherwise) {
  run(false);
  EXPECT_GE(counts_.pieces, 1);
  EXPECT_EQ(counts_.ends, 1);
  EXPECT_EQ(counts_.completions, 1);
  EXPECT_EQ(counts_.error, 0);
}

}  // namespace
}  // namespace verbatim::serve
