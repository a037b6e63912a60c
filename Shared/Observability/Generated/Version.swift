// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from VERSION.

extension Release {
    public static let version = "0.1.0-dev"
}
