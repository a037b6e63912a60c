// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// The section `sync` of an app, for the sync service. Without it the app has the default strategy.
public struct SyncSettings: Sendable, Hashable {
    public var strategy: SyncStrategy
    /// The types that find profiles, the strongest first. Other identities are stored and find nobody.
    public var priority: [IdentityType]
    /// A profile with one of these is known, and is found only by who names one of its login identities.
    public var loginIdentities: Set<IdentityType>
    /// A value of these belongs to one profile; only modify moves it.
    public var uniqueIdentities: Set<IdentityType>
    /// Cannot be changed once set. Also login, unique and first in priority.
    public var immutableIdentities: Set<IdentityType>
    /// Compared without regard to upper and lower case of ASCII. The keys of stored values depend on it, so a change is
    /// refused while there are any (S108).
    public var foldedIdentities: Set<IdentityType>
    /// Whether a search finds profiles without one of their immutable identities (S7, F37).
    public var searchByAnyIdentity: Bool
    /// Whether links of the link service make their mark on the profile whose customer id is the external id.
    public var fromLinks: Bool
    /// Whether a login identity also finds a profile that has another value of a higher-ranked one, which is replaced
    /// then. Otherwise that profile is somebody else's (S10).
    public var joinByLowerRank: Bool
    /// What is no identity: refused as a login identity, passed over as another.
    public var nobody = NobodyValues.standard
    public var limits: Limits
    public var throttle: Throttle

    /// What keeps one profile or one value from growing without end.
    public struct Limits: Sendable, Hashable {
        /// Values of one type on one profile.
        public var valuesPerType = 50
        /// Profiles that share one value of a type that is not unique.
        public var profilesPerValue = 50
        /// Users a device remembers.
        public var usersPerDevice = 50
        /// Windows aliased out of one profile, of those that an alias still reaches.
        public var aliasesPerProfile = 100
        /// Days that an alias reaches back.
        public var aliasWindowDays = 90
        public init() {}
    }

    /// Hot keys: commands per second and how many at once. A rate of 0 is no limit.
    public struct Throttle: Sendable, Hashable {
        public var devicePerSecond = 50
        public var deviceBurst = 1000
        public var loginPerSecond = 200
        public var loginBurst = 5000
        public init() {}
    }

    public init(
        strategy: SyncStrategy = .default, priority: [IdentityType] = Self.defaultPriority,
        login: Set<IdentityType> = [.customerID], unique: Set<IdentityType> = [.customerID],
        immutable: Set<IdentityType> = [.customerID], folded: Set<IdentityType> = [],
        searchByAnyIdentity: Bool = false, fromLinks: Bool = false, joinByLowerRank: Bool = false,
        limits: Limits = Limits(),
        throttle: Throttle = Throttle()
    ) {
        self.strategy = strategy
        self.priority = priority
        loginIdentities = login
        uniqueIdentities = unique
        immutableIdentities = immutable
        foldedIdentities = folded
        self.searchByAnyIdentity = searchByAnyIdentity
        self.fromLinks = fromLinks
        self.joinByLowerRank = joinByLowerRank
        self.limits = limits
        self.throttle = throttle
    }

    /// The vendor's two published lists as one (F32).
    public static let defaultPriority: [IdentityType] = [
        .customerID, .mobileNumber, .email, .other, .facebook, .google, .twitter, .microsoft, .yahoo, .iosIDFA,
        .iosIDFV, .androidAAID, .fireAID, .androidUUID, .ampID, .rokuAID, .rokuPublisherID, .microsoftPublisherID,
        .microsoftAID, .deviceApplicationStamp,
    ]
}

extension SyncSettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        var strategy: String?
        var priority: [String]?
        var loginIdentities: [String]?
        var uniqueIdentities: [String]?
        var immutableIdentities: [String]?
        var caseInsensitiveIdentities: [String]?
        var searchByAnyIdentity: Bool?
        var fromLinks: Bool?
        var joinByLowerRank: Bool?
        var limits: [String: Int]?
        var throttle: [String: Int]?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case strategy, priority, loginIdentities, uniqueIdentities, immutableIdentities, caseInsensitiveIdentities
            case searchByAnyIdentity, fromLinks, joinByLowerRank, limits, throttle
        }
    }

    /// - Parameter place: names the app in a problem's text.
    static func read(
        _ section: Strict<Section>?, _ place: AppsFile.Place
    ) throws(AppsFile.Problem) -> SyncSettings {
        guard let section else { return SyncSettings() }
        let name = section.strategy ?? SyncStrategy.default.name
        guard let strategy = SyncStrategy.all.first(where: { $0.name == name }) else {
            let known = AppsFile.known(SyncStrategy.all.map(\.name), for: name)
            throw AppsFile.Problem("\(place): unknown strategy \(name)\(known)", at: place["strategy"])
        }
        var settings = defaults(of: strategy)
        if strategy == .default {
            for (member, list) in [
                ("priority", section.priority), ("loginIdentities", section.loginIdentities),
                ("uniqueIdentities", section.uniqueIdentities), ("immutableIdentities", section.immutableIdentities),
            ] where list != nil {
                throw AppsFile.Problem(
                    "\(place): the default strategy has fixed identities; remove \(member) or use conversion",
                    at: place[member], isAboutName: true)
            }
        }
        if let names = section.priority { settings.priority = try types(names, place, "priority") }
        if let names = section.loginIdentities {
            settings.loginIdentities = Set(try types(names, place, "loginIdentities"))
        }
        if let names = section.uniqueIdentities {
            settings.uniqueIdentities = Set(try types(names, place, "uniqueIdentities"))
        }
        if let names = section.immutableIdentities {
            settings.immutableIdentities = Set(try types(names, place, "immutableIdentities"))
        }
        if let names = section.caseInsensitiveIdentities {
            settings.foldedIdentities = Set(try types(names, place, "caseInsensitiveIdentities"))
        }
        settings.searchByAnyIdentity = section.searchByAnyIdentity ?? false
        settings.fromLinks = section.fromLinks ?? false
        settings.joinByLowerRank = section.joinByLowerRank ?? false
        try read(
            section.limits ?? [:], into: &settings.limits, place.inside("limits"), 1...100_000,
            [
                "valuesPerType": \.valuesPerType, "profilesPerValue": \.profilesPerValue,
                "usersPerDevice": \.usersPerDevice, "aliasesPerProfile": \.aliasesPerProfile,
                "aliasWindowDays": \.aliasWindowDays,
            ])
        try read(
            section.throttle ?? [:], into: &settings.throttle, place.inside("throttle"), 0...1_000_000,
            [
                "devicePerSecond": \.devicePerSecond, "deviceBurst": \.deviceBurst,
                "loginPerSecond": \.loginPerSecond, "loginBurst": \.loginBurst,
            ])
        try check(settings, place)
        return settings
    }

    /// What holds when the app says nothing (F32).
    static func defaults(of strategy: SyncStrategy) -> SyncSettings {
        let person: Set<IdentityType> = [.customerID, .email]
        switch strategy {
        case .default: return SyncSettings()
        case .bestMatch:
            return SyncSettings(strategy: strategy, login: [], unique: [], immutable: [])
        case .userIDThenEmail:
            return SyncSettings(
                strategy: strategy, priority: [.customerID, .email, .deviceApplicationStamp], login: person,
                unique: [.customerID], immutable: [], folded: [.email])
        default: return SyncSettings(strategy: strategy, login: person, unique: person, immutable: [])
        }
    }

    private static func types(
        _ names: [String], _ place: AppsFile.Place, _ member: String
    ) throws(AppsFile.Problem) -> [IdentityType] {
        var types: [IdentityType] = []
        for (index, name) in names.enumerated() {
            guard let type = IdentityType(rawValue: name) else {
                let guess = AppsFile.guess(IdentityType.allCases.map(\.rawValue), for: name)
                throw AppsFile.Problem(
                    "\(place), \(member): \(name) is not an identity type, such as customerid or email\(guess)",
                    at: place[member, index])
            }
            guard !types.contains(type) else {
                throw AppsFile.Problem("\(place), \(member): lists \(name) twice", at: place[member, index])
            }
            types.append(type)
        }
        return types
    }

    private static func read<Values>(
        _ section: [String: Int], into values: inout Values, _ place: AppsFile.Place, _ range: ClosedRange<Int>,
        _ members: [String: WritableKeyPath<Values, Int>]
    ) throws(AppsFile.Problem) {
        for (name, value) in section.sorted(by: { $0.key < $1.key }) {
            guard let path = members[name] else {
                let known = AppsFile.known(members.keys.sorted(), for: name)
                throw AppsFile.Problem(
                    "\(place): unknown member \(name)\(known)", at: place[name], isAboutName: true)
            }
            guard range.contains(value) else {
                throw AppsFile.Problem(
                    "\(place), \(name): is not from \(range.lowerBound) to \(range.upperBound)", at: place[name])
            }
            values[keyPath: path] = value
        }
    }

    /// Who is verified must be found again by what the app's backend signs (S77, S78, S106), and by nothing that a device
    /// says of itself (S105, S107).
    func check(with verification: VerificationSettings, _ place: AppsFile.Place) throws(AppsFile.Problem) {
        guard verification.mode != .off else { return }
        let mode = verification.mode.rawValue
        guard strategy != .bestMatch else {
            throw AppsFile.Problem(
                "\(place): strategy bestMatch has no known users, so nobody can be verified; use another strategy, or "
                    + "verification mode off", at: place["strategy"])
        }
        let signed: IdentityType = verification.signedFields == .email ? .email : .customerID
        guard loginIdentities.contains(signed) else {
            throw AppsFile.Problem(
                "\(place): verification mode \(mode) with signedFields \(verification.signedFields.rawValue) finds people by "
                    + "\(signed.rawValue); add it to loginIdentities, or use a strategy that has it",
                at: place["loginIdentities"])
        }
        guard immutableIdentities.isEmpty || immutableIdentities.contains(signed) else {
            throw AppsFile.Problem(
                "\(place): verification mode \(mode) with signedFields \(verification.signedFields.rawValue) finds people by "
                    + "\(signed.rawValue), and who has an immutable identity is found by immutable identities only; add "
                    + "\(signed.rawValue) to immutableIdentities, or remove them", at: place["immutableIdentities"])
        }
        if let type = loginIdentities.filter(\.isDevice).min() {
            throw AppsFile.Problem(
                "\(place): login identity \(type.rawValue) is a device's, which needs no vouching; with verification mode "
                    + "\(mode) remove it from loginIdentities", at: place["loginIdentities"])
        }
        let behindDevices = priority.drop { !$0.isDevice }.first { loginIdentities.contains($0) }
        if let device = priority.first(where: \.isDevice), let type = behindDevices {
            throw AppsFile.Problem(
                "\(place): priority has \(device.rawValue) before \(type.rawValue), so a device would decide who logs in; with "
                    + "verification mode \(mode) move login identities before those of devices", at: place["priority"])
        }
    }

    private static func check(_ settings: SyncSettings, _ place: AppsFile.Place) throws(AppsFile.Problem) {
        guard !settings.priority.isEmpty else {
            throw AppsFile.Problem("\(place): priority is empty", at: place["priority"])
        }
        for type in settings.loginIdentities.sorted() where !settings.priority.contains(type) {
            throw AppsFile.Problem(
                "\(place): login identity \(type.rawValue) is not in priority", at: place["priority"])
        }
        let immutable = settings.immutableIdentities
        for type in immutable.sorted()
        where !settings.loginIdentities.contains(type) || !settings.uniqueIdentities.contains(type) {
            throw AppsFile.Problem(
                "\(place): immutable identity \(type.rawValue) must be in loginIdentities and uniqueIdentities too",
                at: place["immutableIdentities"])
        }
        guard Set(settings.priority.prefix(immutable.count)) == immutable else {
            throw AppsFile.Problem("\(place): immutable identities must come first in priority", at: place["priority"])
        }
        if settings.foldedIdentities.contains(.customerID) {  // S80
            throw AppsFile.Problem(
                "\(place): customer ids are case-sensitive everywhere else; remove customerid from "
                    + "caseInsensitiveIdentities", at: place["caseInsensitiveIdentities"])
        }
        if settings.fromLinks, !settings.loginIdentities.contains(.customerID) {  // S79
            throw AppsFile.Problem(
                "\(place): fromLinks needs customerid as a login identity, or nobody finds the profiles that links make",
                at: place["fromLinks"])
        }
        if settings.fromLinks, !settings.uniqueIdentities.contains(.customerID) {  // S117
            throw AppsFile.Problem(
                "\(place): fromLinks needs customerid in uniqueIdentities, or a profile could be that of two linked users",
                at: place["fromLinks"])
        }
        if settings.strategy == .bestMatch, !settings.loginIdentities.isEmpty {
            throw AppsFile.Problem(
                "\(place): strategy bestMatch has no login identities", at: place["loginIdentities"])
        }
        if settings.strategy == .userIDThenEmail {
            guard !settings.joinByLowerRank else {
                throw AppsFile.Problem(
                    "\(place): strategy userIdThenEmail joins by e-mail only profiles without a user id; "
                        + "remove joinByLowerRank", at: place["joinByLowerRank"])
            }
            guard settings.loginIdentities.isSuperset(of: [.customerID, .email]),
                settings.uniqueIdentities.contains(.customerID), !settings.uniqueIdentities.contains(.email),
                settings.immutableIdentities.isEmpty
            else {
                throw AppsFile.Problem(
                    "\(place): strategy userIdThenEmail needs customerid and email as login identities, customerid "
                        + "unique, email not unique, and nothing immutable", at: place["strategy"])
            }
        }
    }
}

/// What tells one strategy from another (F32): data, so that one resolver serves all.
public struct SyncStrategy: Sendable, Hashable {
    /// How a profile is found.
    public enum Lookup: Sendable, Hashable {
        /// Down the app's identity priority.
        case priority
        /// The customer id first, then the e-mail (S27).
        case userIDThenEmail
    }

    /// A login identity that no profile has yet, while an anonymous profile matches.
    public enum NewLogin: Sendable, Hashable {
        /// The anonymous profile becomes the person's.
        case convertAnonymous
        /// The person gets a new profile.
        case createProfile
    }

    public enum Logout: Sendable, Hashable {
        /// Always a new anonymous profile.
        case createAnonymous
        /// Back to the anonymous profile that matches, if there is one.
        case returnToMatching
        /// Back to the anonymous user the device had last, if it still is one.
        case returnToDevices
        /// There are no known users, and a logout is like an identify.
        case identify
    }

    public var name: String
    public var lookup: Lookup
    public var newLogin: NewLogin
    public var logout: Logout
    public var allowsAlias: Bool

    /// S22.
    public static let `default` = SyncStrategy(
        name: "default", lookup: .priority, newLogin: .convertAnonymous, logout: .createAnonymous, allowsAlias: true)
    /// S23.
    public static let conversion = SyncStrategy(
        name: "conversion", lookup: .priority, newLogin: .convertAnonymous, logout: .createAnonymous,
        allowsAlias: true)
    /// S24.
    public static let link = SyncStrategy(
        name: "link", lookup: .priority, newLogin: .createProfile, logout: .createAnonymous, allowsAlias: true)
    /// S25.
    public static let isolation = SyncStrategy(
        name: "isolation", lookup: .priority, newLogin: .createProfile, logout: .returnToMatching, allowsAlias: false)
    /// S26.
    public static let bestMatch = SyncStrategy(
        name: "bestMatch", lookup: .priority, newLogin: .convertAnonymous, logout: .identify, allowsAlias: false)
    public static let userIDThenEmail = SyncStrategy(
        name: "userIdThenEmail", lookup: .userIDThenEmail, newLogin: .createProfile, logout: .returnToDevices,
        allowsAlias: false)

    public static let all = [`default`, conversion, link, isolation, bestMatch, userIDThenEmail]
}
