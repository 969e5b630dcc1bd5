#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <functional>
#include <memory>

namespace verbatim::serve {

/// A connection's bytes, in plain or through TLS. All members belong to the thread of its socket; the
/// functions they are given are called on it, later.
class Wire {
 public:
  using Done = std::function<void(const boost::system::error_code&, size_t)>;

  virtual ~Wire() = default;

  /// The socket below.
  virtual boost::asio::ip::tcp::socket& socket() = 0;
  /// Does what has to be done before the first byte.
  virtual void open(std::function<void(const boost::system::error_code&)> opened) = 0;
  /// Reads some bytes, one call at a time.
  virtual void read_some(boost::asio::mutable_buffer into, Done done) = 0;
  /// Writes some bytes, one call at a time.
  virtual void write_some(boost::asio::const_buffer from, Done done) = 0;
  /// Tells the other side that nothing more comes. The wire must live until `done` is called, which may be
  /// late.
  virtual void end_sending(std::function<void()> done) = 0;
  /// Whether the other side can stop sending and go on receiving.
  virtual bool half_closes() const = 0;
};

std::unique_ptr<Wire> plain_wire(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Wire> tls_wire(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context);

}  // namespace verbatim::serve
