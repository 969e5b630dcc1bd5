#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "serve/transport_fixture.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::RawClient;
using ::testing::HasSubstr;

/// Writes a new key, and a certificate that it signs itself.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  EVP_PKEY* const pair = EVP_EC_gen("P-256");
  X509* const paper = X509_new();
  X509_set_version(paper, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(paper), 1);
  X509_gmtime_adj(X509_getm_notBefore(paper), -60);
  X509_gmtime_adj(X509_getm_notAfter(paper), 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(paper), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(paper, X509_get_subject_name(paper));
  X509_set_pubkey(paper, pair);
  ASSERT_GT(X509_sign(paper, pair, EVP_sha256()), 0);
  FILE* file = std::fopen(certificate.c_str(), "w");
  ASSERT_NE(file, nullptr);
  PEM_write_X509(file, paper);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  ASSERT_NE(file, nullptr);
  PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(paper);
  EVP_PKEY_free(pair);
}

/// TLS over a raw connection.
class TlsClient {
 public:
  TlsClient(RawClient connection, int newest)
      : connection_(std::move(connection)), context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr) {
    SSL_CTX_set_max_proto_version(context_, newest);
    SSL_CTX_set_security_level(context_, 0);
    const unsigned char protocols[] = "\x02h2\x08http/1.1";
    SSL_CTX_set_alpn_protos(context_, protocols, sizeof protocols - 1);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, connection_.socket());
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connect() { return SSL_connect(ssl_) == 1; }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl_, &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }
  void send(const std::string& text) { SSL_write(ssl_, text.data(), static_cast<int>(text.size())); }
  std::string read_until(const std::string& end) {
    std::string all;
    char bytes[4096];
    for (int got = 0;
         all.find(end) == std::string::npos && (got = SSL_read(ssl_, bytes, sizeof bytes)) > 0;) {
      all.append(bytes, static_cast<size_t>(got));
    }
    return all;
  }
  void close() {
    SSL_shutdown(ssl_);
    connection_.close();
  }

 private:
  RawClient connection_;
  SSL_CTX* context_;
  SSL* ssl_;
};

class Tls : public test::Transported {
 protected:
  void SetUp() override {
    write_certificate(folder_.path() / "c.pem", folder_.path() / "k.pem");
    serve::TransportOptions options;
    options.tls_certificate = folder_.path() / "c.pem";
    options.tls_key = folder_.path() / "k.pem";
    options.header_timeout = std::chrono::seconds(2);
    start(options);
  }

  test::TemporaryFolder folder_;
};

TEST_F(Tls, CarriesRequestsAndStreams) {
  for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient one(client(), newest);
    ASSERT_TRUE(one.connect());
    EXPECT_EQ(one.protocol(), "http/1.1");
    one.send(test::kGetHello);
    EXPECT_THAT(one.read_until("hello"), HasSubstr("HTTP/1.1 200 OK"));
    one.send("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(one.read_until("\r\n0\r\n\r\n"), HasSubstr("three"));
    EXPECT_EQ(one.read_until("x"), "");  // closed in order
  }
}

TEST_F(Tls, RefusesOldProtocolsAndPlainRequests) {
  TlsClient old(client(), TLS1_1_VERSION);
  EXPECT_FALSE(old.connect());
  RawClient plain = client();
  EXPECT_EQ(plain.ask(test::kGetHello).status, 0);
  EXPECT_TRUE(plain.closed_within(std::chrono::seconds(5)));
  RawClient silent = client();
  EXPECT_TRUE(silent.closed_within(std::chrono::seconds(10)));
  TlsClient good(client(), TLS1_3_VERSION);
  EXPECT_TRUE(good.connect());
}

TEST_F(Tls, NoticesAClientThatLeaves) {
  TlsClient one(client(), TLS1_3_VERSION);
  ASSERT_TRUE(one.connect());
  one.send("GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(test::eventually([&] { return waiting_ == 1; }));
  one.close();
  EXPECT_TRUE(test::eventually([&] { return gone_ == 1; }));
}

TEST(TlsFiles, MustBelongTogether) {
  test::TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() / name; };
  write_certificate(at("c.pem"), at("k.pem"));
  write_certificate(at("other-c.pem"), at("other-k.pem"));
  const auto refused = [&](const char* certificate, const char* key) {
    serve::TransportOptions options;
    options.tls_certificate = at(certificate);
    options.tls_key = at(key);
    try {
      serve::Transport transport(options, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("c.pem", "k.pem"), "");
  EXPECT_THAT(refused("c.pem", "other-k.pem"), HasSubstr("other-k.pem"));
  EXPECT_THAT(refused("k.pem", "k.pem"), HasSubstr("k.pem"));
  EXPECT_THAT(refused("none.pem", "k.pem"), HasSubstr("none.pem"));
}

}  // namespace
}  // namespace verbatim
