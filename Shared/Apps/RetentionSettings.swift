// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The section `retention` of an app: after how long without use what nobody comes back for goes (docs/sync.md
/// "Retention"). In milliseconds; `nil`: never (S200).
public struct RetentionSettings: Sendable, Hashable {
    /// Anonymous profiles.
    public var anonymous: Int64?
    /// Profiles that have lost their last identity.
    public var orphan: Int64?
    /// Devices on which nobody is logged in.
    public var device: Int64?
    /// Sessions of devices on which nobody is logged in.
    public var session: Int64?
    /// Users who were never linked.
    public var unlinked: Int64?

    public init(
        anonymous: Int64? = nil, orphan: Int64? = nil, device: Int64? = nil, session: Int64? = nil,
        unlinked: Int64? = nil
    ) {
        self.anonymous = anonymous
        self.orphan = orphan
        self.device = device
        self.session = session
        self.unlinked = unlinked
    }

    /// Each with its name in the file.
    package var periods: [(member: String, milliseconds: Int64)] {
        [
            ("anonymousDays", anonymous), ("orphanDays", orphan), ("deviceDays", device), ("sessionDays", session),
            ("unlinkedDays", unlinked),
        ].compactMap { member, period in period.map { (member, $0) } }
    }
}

extension RetentionSettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        var anonymousDays: Int64?
        var orphanDays: Int64?
        var deviceDays: Int64?
        var sessionDays: Int64?
        var unlinkedDays: Int64?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case anonymousDays, orphanDays, deviceDays, sessionDays, unlinkedDays
        }
    }

    private static let day: Int64 = 86_400_000

    /// - Parameter sdk: a user token may come back for as long as this section says (U200).
    static func read(
        _ section: Strict<Section>?, _ place: AppsFile.Place, sdk: SDKSettings
    ) throws(AppsFile.Problem) -> RetentionSettings {
        guard let section else { return RetentionSettings() }
        func period(_ days: Int64?, _ member: String) throws(AppsFile.Problem) -> Int64? {
            guard let days else { return nil }
            guard (1...3650).contains(days) else {
                throw AppsFile.Problem("\(place), \(member): is not between 1 and 3650", at: place[member])
            }
            return days * day
        }
        let settings = RetentionSettings(
            anonymous: try period(section.anonymousDays, "anonymousDays"),
            orphan: try period(section.orphanDays, "orphanDays"),
            device: try period(section.deviceDays, "deviceDays"),
            session: try period(section.sessionDays, "sessionDays"),
            unlinked: try period(section.unlinkedDays, "unlinkedDays"))
        let comesBack = sdk.tokenLifetime + sdk.tokenGrace
        if let unlinked = settings.unlinked, unlinked < comesBack {
            let days = (comesBack + day - 1) / day
            throw AppsFile.Problem(
                "\(place), unlinkedDays: a user may come back by a token for \(days) days "
                    + "(sdk.tokenLifetimeSeconds and tokenGraceSeconds); name as many, or shorten these",
                at: place["unlinkedDays"])
        }
        return settings
    }
}

extension AppDirectory {
    /// Why this version of the file must not come into force where the inbox remembers for so long: what a command that comes
    /// again made would be made anew, although it is gone already (S201).
    package func refusal(ofRetentionBelow inbox: Duration) -> AppsFile.Problem? {
        let seconds = inbox.components.seconds
        for id in ids {
            for (member, milliseconds) in self[id]?.retention.periods ?? [] where milliseconds / 1000 < seconds {
                return AppsFile.Problem(
                    "app \(id), retention, \(member): is shorter than JOURNAL_RETENTION_HOURS, \(seconds / 3600); "
                        + "name \((seconds + 86_399) / 86_400) days or more")
            }
        }
        return nil
    }
}
