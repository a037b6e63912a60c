// SPDX-License-Identifier: Apache-2.0

/// The section `dsr` of an app: requests of data subjects (docs/sync.md "Requests of data subjects").
public struct SubjectRequestSettings: Sendable, Hashable {
    /// How long a request can be cancelled before it is carried out, in milliseconds (S212).
    public var delay: Int64

    public init(delay: Int64 = 72 * 3_600_000) { self.delay = delay }
}

extension SubjectRequestSettings {
    /// The section's shape in the file.
    struct Section: Mapping {
        var delayHours: Int64?

        enum CodingKeys: String, CodingKey, CaseIterable { case delayHours }
    }

    static func read(
        _ section: Strict<Section>?, _ place: AppsFile.Place
    ) throws(AppsFile.Problem) -> SubjectRequestSettings {
        guard let hours = section?.delayHours else { return SubjectRequestSettings() }
        // The law gives a month.
        guard (0...720).contains(hours) else {
            throw AppsFile.Problem("\(place), delayHours: is not between 0 and 720", at: place["delayHours"])
        }
        return SubjectRequestSettings(delay: hours * 3_600_000)
    }
}
