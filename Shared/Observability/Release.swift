// SPDX-License-Identifier: Apache-2.0

/// The release that this program belongs to: a semantic version, the same for all executables. `--version` prints it, the
/// metric `identity_build_info` carries it, and the inbox keeps it beside each decision.
public enum Release {}
