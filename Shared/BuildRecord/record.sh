#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# record.sh ROOT FOLDER: writes FOLDER/Commit.swift with the commit of the sources in ROOT, unless it has that already. The
# commit is that of the repository, else what `git archive` wrote into archive.txt, else empty: nothing is made up.
set -eu
root=$1
folder=$2
commit=
day=
modified=false
if [ -e "$root/.git" ] && found=$(TZ=UTC git -C "$root" log -1 --date=format-local:%Y-%m-%d --format='%H %cd' 2>/dev/null); then
    commit=${found% *}
    day=${found#* }
    git -C "$root" --no-optional-locks diff --quiet HEAD -- 2>/dev/null || modified=true
elif read -r found <"$root/Shared/BuildRecord/archive.txt" && [ "${found#\$}" = "$found" ]; then
    commit=${found% *}
    day=${found#* }
fi
text="// Written by record.sh.
enum RecordedCommit {
    static let id: StaticString = \"$commit\"
    static let day: StaticString = \"$day\"
    static let isModified = $modified
}"
mkdir -p "$folder"
if [ ! -f "$folder/Commit.swift" ] || [ "$(cat "$folder/Commit.swift")" != "$text" ]; then
    printf '%s\n' "$text" >"$folder/Commit.swift"
fi
