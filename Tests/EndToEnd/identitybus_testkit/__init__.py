# SPDX-License-Identifier: Apache-2.0
"""Helpers of the end-to-end tests. Nothing here is shared with the product: signatures, envelopes and the Kafka client
are somebody else's or written again from the documentation."""
