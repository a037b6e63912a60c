// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Metrics
import NIOCore
import NIOPosix
import NIOSSL
import Runtime
import ServiceLifecycle
import Synchronization

/// What the gateway shows to clients over TLS: a certificate chain and its key.
struct Certificate: Sendable {
    private let chain: [NIOSSLCertificate]
    private let key: NIOSSLPrivateKey

    /// - Throws: `ConfigurationProblem`; what a key file holds is never shown.
    init(_ files: GatewayConfiguration.TLSFiles) throws {
        for (variable, path) in [
            ("GATEWAY_TLS_CERTIFICATE", files.certificateChain), ("GATEWAY_TLS_KEY", files.privateKey),
        ] {
            if let words = TextFile.problem(of: path) { throw ConfigurationProblem(variable, words) }
        }
        do {
            chain = try NIOSSLCertificate.fromPEMFile(files.certificateChain)
        } catch {
            throw ConfigurationProblem(
                "GATEWAY_TLS_CERTIFICATE", "\(files.certificateChain) holds no certificate in PEM form")
        }
        do {
            key = try NIOSSLPrivateKey(file: files.privateKey, format: .pem)
        } catch {
            throw ConfigurationProblem("GATEWAY_TLS_KEY", "\(files.privateKey) holds no private key in PEM form")
        }
        do {
            _ = try NIOSSLContext(configuration: configuration)
        } catch NIOSSLError.failedToLoadPrivateKey {
            // Both are read: what is left of the key is whether it belongs to the certificate.
            throw ConfigurationProblem(
                "GATEWAY_TLS_KEY", "\(files.privateKey) is not the key of GATEWAY_TLS_CERTIFICATE")
        } catch {
            throw ConfigurationProblem(
                "GATEWAY_TLS_CERTIFICATE",
                "\(files.certificateChain) cannot be used for TLS (\(error)); one with an RSA or ECDSA key can")
        }
    }

    var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }

    /// What takes the place of another certificate in one handshake.
    var override: NIOSSLContextConfigurationOverride {
        var override = NIOSSLContextConfigurationOverride()
        override.certificateChain = chain.map { .certificate($0) }
        override.privateKey = .privateKey(key)
        return override
    }

    /// When the first of the chain is valid no more.
    var end: Timestamp { Timestamp(milliseconds: chain.map { Int64($0.notValidAfter) * 1000 }.min() ?? 0) }
}

/// The certificate that each handshake shows: its files are read again when they change, so one that is renewed needs no
/// restart. Files that do not go together, as in the midst of a change, leave the one of before in force.
final class Certificates: Service, Sendable {
    private struct State {
        var certificate: Certificate
        /// What the files hold; of those that were refused, too.
        var content: [Data?]
    }

    private let files: GatewayConfiguration.TLSFiles
    private let logger: Logger
    private let state: Mutex<State>

    private static let pause: Duration = .seconds(5)

    /// - Throws: `ConfigurationProblem`.
    init(_ files: GatewayConfiguration.TLSFiles, _ logger: Logger) throws {
        self.files = files
        self.logger = logger
        // Before they are read: what changes meanwhile is read again.
        let content = Self.content(files)
        state = Mutex(State(certificate: try Certificate(files), content: content))
        tellEnd()
    }

    /// For a server: each of its handshakes has what is in force at that moment.
    var configuration: TLSConfiguration {
        var configuration = state.withLock { $0.certificate.configuration }
        configuration.sslContextCallback = { [self] _, promise in
            promise.succeed(state.withLock { $0.certificate.override })
        }
        return configuration
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try await Task.sleep(for: Self.pause)
                // Files are read on threads that may wait.
                try await NIOThreadPool.singleton.runIfActive { self.look() }
            }
        }
    }

    private func look() {
        let content = Self.content(files)
        guard content != state.withLock({ $0.content }) else { return tellEnd() }
        do {
            let certificate = try Certificate(files)
            state.withLock { $0 = State(certificate: certificate, content: content) }
            logger.notice(
                "the certificate has changed",
                metadata: ["event": "tls.changed", "end": "\(certificate.end.rfc3339)"])
        } catch {
            state.withLock { $0.content = content }
            logger.warning(
                "the files of the certificate have changed and cannot be used; the one before stays in force",
                metadata: ["event": "tls.refused", "error": "\(error)"])
        }
        tellEnd()
    }

    private func tellEnd() {
        Gauge(label: "gateway_tls_certificate_expires_timestamp_seconds")
            .record(Double(state.withLock { $0.certificate.end }.milliseconds) / 1000)
    }

    private static func content(_ files: GatewayConfiguration.TLSFiles) -> [Data?] {
        [files.certificateChain, files.privateKey].map { FileManager.default.contents(atPath: $0) }
    }
}
