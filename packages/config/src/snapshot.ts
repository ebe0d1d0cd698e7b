import type { Section } from './section.js'

/** Where the keys in memory are kept over a restart. */
export interface SnapshotConfig {
  /** Undefined: nowhere. */
  readonly file: string | undefined
  readonly everyMs: number
}

const DEFAULT_SNAPSHOT: SnapshotConfig = { file: undefined, everyMs: 60_000 }

/** The section `snapshot`. */
export function readSnapshotSection(section: Section): SnapshotConfig {
  const config = {
    file: section.text('file', '/var/lib/sluicegate/keys.snapshot'),
    everyMs: section.duration('every', 1_000, 86_400_000) ?? DEFAULT_SNAPSHOT.everyMs,
  }
  section.done()
  return config
}
