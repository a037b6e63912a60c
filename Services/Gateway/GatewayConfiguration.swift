// SPDX-License-Identifier: Apache-2.0

import Messaging
public import Runtime

/// The gateway's settings, read from the environment once at start (docs/gateway.md lists the variables).
public struct GatewayConfiguration: Sendable {
    /// Kafka, topics, apps file, keys, health server and logs, as for every service.
    public var service: ServiceConfiguration
    /// Where the API is served.
    public var api: Place
    /// Where the admin port is; `nil`: there is none.
    public var admin: Place?
    /// What the admin port shows to browsers.
    var console = ConsoleMode.no
    /// How long a request waits for its reply.
    public var replyTimeout: Duration
    /// Requests that may wait for a reply at once.
    public var maxInFlight: Int
    public var maxConnections: Int
    /// Of one client address.
    public var maxConnectionsPerAddress: Int
    /// Bytes of a request body, after decompression.
    public var maxBodyBytes: Int
    /// How long a client may take to send a request, and stay connected without one.
    public var clientTimeout: Duration
    /// Whose `X-Forwarded-For` is believed; `nil` when nothing is said about proxies.
    var trustedProxies: [IPAddress.Network]?
    /// Wrong credentials from one client address that are looked at; 0: any number.
    public var wrongCredentialsPerMinute: Int
    /// Whether the access log names clients' addresses.
    public var logsClients: Bool
    /// For how long requests are still taken after the signal that ends the gateway.
    public var drainDelay: Duration
    /// PEM files; both or none.
    public var tls: TLSFiles?

    /// An address and a port to listen on.
    public struct Place: Sendable {
        public var host: String
        /// 0: chosen by the kernel and logged.
        public var port: Int
        /// The setting that names the port.
        var variable: String
    }

    public struct TLSFiles: Sendable {
        public var certificateChain: String
        public var privateKey: String
    }

    /// - Throws: `ConfigurationProblem`, `KafkaConfigurationError`.
    public init(environment: [String: String]) throws {
        service = try ServiceConfiguration(environment: environment, service: "gateway", derived: .gateway)
        let settings = EnvironmentSettings(environment)
        api = Place(
            host: settings.text("GATEWAY_HOST") ?? "127.0.0.1", port: try settings.integer(.gatewayPort),
            variable: "GATEWAY_PORT")
        if settings.text("GATEWAY_ADMIN_PORT") != nil {
            admin = Place(
                host: settings.text("GATEWAY_ADMIN_HOST") ?? "127.0.0.1", port: try settings.integer(.adminPort),
                variable: "GATEWAY_ADMIN_PORT")
        }
        console = try ConsoleMode(settings)
        if console != .no, admin == nil {
            throw ConfigurationProblem(
                "CONSOLE", "is \(console.rawValue), but GATEWAY_ADMIN_PORT names no port where it could be shown")
        }
        replyTimeout = .milliseconds(try settings.integer(.replyTimeout))
        maxInFlight = try settings.integer(.maxInFlight)
        maxConnections = try settings.integer(.maxConnections)
        maxConnectionsPerAddress = try settings.integer(.maxConnectionsPerAddress, default: max(1, maxConnections / 8))
        maxBodyBytes = try settings.integer(.maxBodyBytes)
        drainDelay = .seconds(try settings.integer(.drainDelay))
        clientTimeout = .seconds(try settings.integer(.clientTimeout))
        trustedProxies = try settings.text("GATEWAY_TRUSTED_PROXIES").map { try Self.networks($0) }
        wrongCredentialsPerMinute = try settings.integer(.wrongCredentials)
        logsClients = try settings.choice("GATEWAY_LOG_CLIENTS", default: YesOrNo.yes) == .yes
        switch (settings.text("GATEWAY_TLS_CERTIFICATE"), settings.text("GATEWAY_TLS_KEY")) {
        case (nil, nil): tls = nil
        case (let chain?, let key?): tls = TLSFiles(certificateChain: chain, privateKey: key)
        case (nil, _): throw ConfigurationProblem("GATEWAY_TLS_CERTIFICATE", "is not set, but GATEWAY_TLS_KEY is")
        case (_, nil): throw ConfigurationProblem("GATEWAY_TLS_KEY", "is not set, but GATEWAY_TLS_CERTIFICATE is")
        }
        try checkPorts()
    }

    /// Each address that is named serves one thing.
    private func checkPorts() throws(ConfigurationProblem) {
        let health = Place(host: service.httpHost, port: service.httpPort, variable: "HTTP_PORT")
        let places = [health, api] + (admin.map { [$0] } ?? [])
        for (number, place) in places.enumerated() where place.port != 0 {
            let other = places.prefix(number).first { $0.port == place.port && $0.host == place.host }
            guard let other else { continue }
            throw ConfigurationProblem(
                place.variable, "is \(place.port), and so is \(other.variable); each needs a port of its own")
        }
    }

    /// Reads what is only used when the servers start.
    /// - Throws: `ConfigurationProblem` for a file that is not what it should be, or a host that nobody can listen on here.
    public func readAhead() throws {
        if let tls { _ = try Certificate(tls) }
        let hosts = [("GATEWAY_HOST", api.host)] + (admin.map { [("GATEWAY_ADMIN_HOST", $0.host)] } ?? [])
        try service.checkHosts(hosts.map { (variable: $0.0, host: $0.1) })
    }

    private enum YesOrNo: String, CaseIterable { case yes, no }

    /// Networks with commas between them, or `none`: every peer is a client.
    private static func networks(_ text: String) throws(ConfigurationProblem) -> [IPAddress.Network] {
        if text == "none" { return [] }
        var networks: [IPAddress.Network] = []
        for part in text.split(separator: ",") {
            guard let network = IPAddress.Network(part.filter { $0 != " " }) else {
                throw ConfigurationProblem(
                    "GATEWAY_TRUSTED_PROXIES",
                    "\(part) is not a network; give addresses and networks such as 10.0.0.0/8,2001:db8::7, or none")
            }
            networks.append(network)
        }
        return networks
    }
}
