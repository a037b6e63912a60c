// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation

/// Reads typed settings from the environment. Empty counts as absent; a `_FILE` variant names a file that holds the
/// value (for secrets that are mounted).
public struct EnvironmentSettings {
    private let environment: [String: String]

    public init(_ environment: [String: String]) { self.environment = environment }

    public func text(_ variable: String) -> String? {
        guard let value = environment[variable], !value.isEmpty else { return nil }
        return value
    }

    public func secret(_ variable: String) throws(ConfigurationProblem) -> String? {
        do throws(TextFile.VariableProblem) {
            return try TextFile.secret(of: variable, in: environment)
        } catch {
            throw ConfigurationProblem(error.variable, error.words)
        }
    }

    /// - Parameter standard: in place of the setting's own default.
    public func integer(_ setting: Setting, default standard: Int? = nil) throws(ConfigurationProblem) -> Int {
        let text = text(setting.name)
        if let text, let problem = setting.problem(of: text) { throw ConfigurationProblem(setting.name, problem) }
        return text.flatMap { Int($0) } ?? standard ?? setting.standard.flatMap { Int($0) } ?? 0
    }

    public func choice<Value: RawRepresentable & CaseIterable>(
        _ variable: String, default fallback: Value
    ) throws(ConfigurationProblem) -> Value where Value.RawValue == String {
        guard let text = text(variable) else { return fallback }
        guard let value = Value(rawValue: text.lowercased()) else {
            throw ConfigurationProblem(
                variable, "\(text) is not one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return value
    }
}

/// A setting that ends the start: which variable, what is wrong, what would be right. One line, no secret.
public struct ConfigurationProblem: Error, Sendable, CustomStringConvertible {
    public var variable: String
    public var problem: String

    public init(_ variable: String, _ problem: String) {
        self.variable = variable
        self.problem = problem
    }

    public var description: String { "\(variable): \(problem)" }
}
