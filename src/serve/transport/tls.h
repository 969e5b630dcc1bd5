#pragma once

#include <boost/asio/ssl/context.hpp>

#include <filesystem>
#include <memory>

namespace verbatim::serve {

/// The context of a server's TLS 1.2 and 1.3 connections, which speak HTTP/1.1. Throws Error(kBadInput) when
/// the certificate or the key cannot be read or they do not belong together.
std::unique_ptr<boost::asio::ssl::context> tls_context(const std::filesystem::path& certificate,
                                                       const std::filesystem::path& key);

}  // namespace verbatim::serve
