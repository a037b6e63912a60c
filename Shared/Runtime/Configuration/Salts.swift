// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Storage

/// The salts of all stores of a deployment, on one line: what has to be taken along when its topics are replayed into
/// stores that are empty (docs/operations.md, "A replay").
public enum Salts {
    public static let variable = "IDENTITYBUS_SALTS"

    /// - Parameter salts: by service.
    public static func text(_ salts: [String: [UInt8]]) -> String {
        salts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.hex)" }.joined(separator: ",")
    }

    public static func read(_ text: String) throws(ConfigurationProblem) -> [String: [UInt8]] {
        var salts: [String: [UInt8]] = [:]
        for part in text.split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, let salt = [UInt8](hex: pair[1]), salt.count == Salt.byteCount,
                salts.updateValue(salt, forKey: String(pair[0])) == nil
            else {
                throw ConfigurationProblem(
                    variable,
                    "is not a line as `identitybus salts` prints it: <service>=<\(2 * Salt.byteCount) hexadecimal digits>,…"
                )
            }
        }
        return salts
    }

    /// Gives an empty store the salt that was taken along.
    /// - Throws: `ConfigurationProblem` where the store has another one, or would not be replayed.
    static func settle(
        _ configuration: ServiceConfiguration, _ service: String, on database: any SQLDatabase, _ logger: Logger
    ) throws {
        guard let salts = configuration.salts else {
            guard configuration.replayUntil != nil else { return }
            if try database.transaction({ try Salt.stored(in: $0) }) == nil {
                logger.warning(
                    "the store is empty and gets a salt of its own: erasures of before, which name ids, do nothing",
                    metadata: ["event": "settings.new-salt", "set": "\(variable)"])
            }
            return
        }
        guard let salt = salts[service] else {
            throw ConfigurationProblem(variable, "names no salt of the \(service) service")
        }
        try database.transaction { transaction in
            if let stored = try Salt.stored(in: transaction) {
                guard stored == salt else {
                    throw ConfigurationProblem(
                        variable,
                        "is not of this store: the \(service) service decides with another salt. "
                            + "Leave it out, or give an empty store")
                }
                return
            }
            guard configuration.replayUntil != nil else {
                throw ConfigurationProblem(
                    "REPLAY_UNTIL",
                    "is not set, and the store of the \(service) service is empty: set it to the present moment, "
                        + "so that the past is read in the order of time")
            }
            try Salt.keep(salt, in: transaction)
        }
    }
}
