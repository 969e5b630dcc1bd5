#include "serve/transport/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <boost/asio/ssl/stream.hpp>

#include <string_view>

#include "serve/transport/wire.h"
#include "verbatim/error.h"

namespace verbatim::serve {

namespace {

namespace asio = boost::asio;

/// The protocol that connections speak, as ALPN writes it: its length, then its name.
constexpr std::string_view kProtocols = "\x08http/1.1";

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                    unsigned int offered_length, void*) {
  unsigned char* found = nullptr;
  const auto* ours = reinterpret_cast<const unsigned char*>(kProtocols.data());
  const int result = SSL_select_next_proto(&found, length, ours, static_cast<unsigned int>(kProtocols.size()),
                                           offered, offered_length);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

class TlsWire final : public Wire {
 public:
  TlsWire(asio::ip::tcp::socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

  asio::ip::tcp::socket& socket() override { return stream_.next_layer(); }
  void open(std::function<void(const boost::system::error_code&)> opened) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(opened));
  }
  void read_some(asio::mutable_buffer into, Done done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void write_some(asio::const_buffer from, Done done) override {
    stream_.async_write_some(from, std::move(done));
  }
  void end_sending(std::function<void()> done) override {
    stream_.async_shutdown([done = std::move(done)](const boost::system::error_code&) { done(); });
  }
  bool half_closes() const override { return false; }

 private:
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Wire> tls_wire(asio::ip::tcp::socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsWire>(std::move(socket), context);
}

std::unique_ptr<asio::ssl::context> tls_context(const std::filesystem::path& certificate,
                                                const std::filesystem::path& key) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  const auto check = [](const std::filesystem::path& file, const char* what,
                        const boost::system::error_code& error) {
    if (!error) return;
    throw Error(ErrorKind::kBadInput,
                fmt::format("{}: cannot be used as {}: {}", file.string(), what, error.message()));
  };
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native,
                      SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // for thousands of idle connections
  SSL_CTX_set_alpn_select_cb(native, choose_protocol, nullptr);
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate.string(), error);
  check(certificate, "a certificate chain in PEM", error);
  context->use_private_key_file(key.string(), asio::ssl::context::pem, error);
  check(key, "the certificate's private key in PEM", error);
  if (SSL_CTX_check_private_key(native) != 1) {
    throw Error(ErrorKind::kBadInput,
                fmt::format("{}: is not the key of the certificate {}", key.string(), certificate.string()));
  }
  return context;
}

}  // namespace verbatim::serve
