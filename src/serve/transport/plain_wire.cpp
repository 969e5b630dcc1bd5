#include "serve/transport/wire.h"

namespace verbatim::serve {

namespace {

class PlainWire final : public Wire {
 public:
  explicit PlainWire(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  boost::asio::ip::tcp::socket& socket() override { return socket_; }
  void open(std::function<void(const boost::system::error_code&)> opened) override { opened({}); }
  void read_some(boost::asio::mutable_buffer into, Done done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void write_some(boost::asio::const_buffer from, Done done) override {
    socket_.async_write_some(from, std::move(done));
  }
  void end_sending(std::function<void()> done) override {
    boost::system::error_code ignored;
    socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    done();
  }
  bool half_closes() const override { return true; }

 private:
  boost::asio::ip::tcp::socket socket_;
};

}  // namespace

std::unique_ptr<Wire> plain_wire(boost::asio::ip::tcp::socket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

}  // namespace verbatim::serve
