// SPDX-License-Identifier: Apache-2.0

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
