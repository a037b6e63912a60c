// SPDX-License-Identifier: Apache-2.0

/// The section `gateway` of an app, for the HTTP gateway.
public struct GatewaySettings: Sendable, Hashable {
    /// The identity calls.
    public enum Operation: String, Sendable, Hashable, CaseIterable {
        case identify, login, logout, modify, search, alias
    }

    /// The calls that may show a key's id without its secret. Anybody who reads the
    /// app's web page can then send them; none unless the app says otherwise.
    public var keyOnly: Set<Operation>
    /// Seconds that an SDK may answer `identify` and `login` from its own cache (`X-MP-Max-Age`). `nil` sends no
    /// header, and the SDK asks every time.
    public var maxAgeSeconds: Int?
    /// The web pages that may call, as browsers name them: `https://shop.example`. `nil`: all.
    public var origins: Set<String>?
    public var limits: Limits

    /// How many requests are let in, each second and at once.
    public struct Limits: Sendable, Hashable {
        public struct Rate: Sendable, Hashable {
            public var perSecond: Double
            public var burst: Double

            public init(perSecond: Double, burst: Double) {
                self.perSecond = perSecond
                self.burst = burst
            }
        }

        /// For each API key.
        public var key: Rate
        /// For each client address that shows a key alone.
        public var address: Rate

        public init(
            key: Rate = Rate(perSecond: 5000, burst: 10000), address: Rate = Rate(perSecond: 50, burst: 200)
        ) {
            self.key = key
            self.address = address
        }
    }

    /// What `keyOnly: true` stands for: enough for a page to say who is there. The others tell about people, or change
    /// them.
    public static let usualKeyOnly: Set<Operation> = [.identify, .login, .logout]

    public init(
        keyOnly: Set<Operation> = [], maxAgeSeconds: Int? = nil, origins: Set<String>? = nil, limits: Limits = Limits()
    ) {
        self.keyOnly = keyOnly
        self.maxAgeSeconds = maxAgeSeconds
        self.origins = origins
        self.limits = limits
    }

    /// Whether a page of this origin may call. No origin: no browser asks.
    public func admits(origin: String?) -> Bool {
        guard let origins, let origin else { return true }
        return origins.contains(origin.lowercased())
    }
}

extension GatewaySettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        var keyOnly: KeyOnly?
        var maxAgeSeconds: Int?
        var origins: [String]?
        var limits: Strict<LimitsSection>?

        enum CodingKeys: String, CodingKey, CaseIterable { case keyOnly, maxAgeSeconds, origins, limits }
    }

    /// `true`, `false` or a list of calls.
    enum KeyOnly: Decodable {
        case usual(Bool)
        case named([String])

        init(from decoder: any Decoder) throws {
            if let list = try? decoder.singleValueContainer().decode([String].self) {
                self = .named(list)
            } else {
                self = .usual(try decoder.singleValueContainer().decode(Bool.self))
            }
        }
    }

    struct LimitsSection: Mapping {
        var keyPerSecond: Int?
        var keyBurst: Int?
        var addressPerSecond: Int?
        var addressBurst: Int?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case keyPerSecond, keyBurst, addressPerSecond, addressBurst
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(_ section: Strict<Section>?, _ place: AppsFile.Place) throws(AppsFile.Problem) -> GatewaySettings {
        guard let section else { return GatewaySettings() }
        if let age = section.maxAgeSeconds, !(0...604_800).contains(age) {
            throw AppsFile.Problem(
                "\(place): maxAgeSeconds is not from 0 to 604800 (a week)", at: place["maxAgeSeconds"])
        }
        return GatewaySettings(
            keyOnly: try operations(section.keyOnly, place), maxAgeSeconds: section.maxAgeSeconds,
            origins: try section.origins.map { list throws(AppsFile.Problem) in try origins(list, place) },
            limits: try limits(section.limits, place.inside("limits")))
    }

    private static func operations(
        _ section: KeyOnly?, _ place: AppsFile.Place
    ) throws(AppsFile.Problem) -> Set<Operation> {
        switch section {
        case nil, .usual(false): return []
        case .usual(true): return usualKeyOnly
        case .named(let names):
            var operations: Set<Operation> = []
            for (index, name) in names.enumerated() {
                guard let operation = Operation(rawValue: name) else {
                    let known = AppsFile.known(Operation.allCases.map(\.rawValue), for: name)
                    throw AppsFile.Problem(
                        "\(place), keyOnly: there is no call \(name)\(known)", at: place["keyOnly", index])
                }
                operations.insert(operation)
            }
            return operations
        }
    }

    private static func origins(_ list: [String], _ place: AppsFile.Place) throws(AppsFile.Problem) -> Set<String> {
        guard !list.isEmpty else {
            throw AppsFile.Problem("\(place), origins: is empty; leave it out to admit all", at: place["origins"])
        }
        var origins: Set<String> = []
        for (index, text) in list.enumerated() {
            let origin = text.lowercased()
            let host = ["https://", "http://"].first { origin.hasPrefix($0) }.map { origin.dropFirst($0.count) }
            guard let host, !host.isEmpty,
                host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !Array("/?#@*,".utf8).contains($0) })
            else {
                throw AppsFile.Problem(
                    "\(place), origins: \(text) is not a scheme, a host and at most a port, "
                        + "such as https://shop.example", at: place["origins", index])
            }
            origins.insert(origin)
        }
        return origins
    }

    private static func limits(
        _ section: Strict<LimitsSection>?, _ place: AppsFile.Place
    ) throws(AppsFile.Problem) -> Limits {
        var limits = Limits()
        func read(_ value: Int?, _ member: String, into rate: inout Double) throws(AppsFile.Problem) {
            guard let value else { return }
            guard (1...1_000_000).contains(value) else {
                throw AppsFile.Problem("\(place), \(member): is not from 1 to 1000000", at: place[member])
            }
            rate = Double(value)
        }
        try read(section?.keyPerSecond, "keyPerSecond", into: &limits.key.perSecond)
        try read(section?.keyBurst, "keyBurst", into: &limits.key.burst)
        try read(section?.addressPerSecond, "addressPerSecond", into: &limits.address.perSecond)
        try read(section?.addressBurst, "addressBurst", into: &limits.address.burst)
        return limits
    }
}
