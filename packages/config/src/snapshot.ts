import { duration, option, text, type ValuesOf } from './option.js'

/** The section `snapshot`: where the keys in memory are kept over a restart. */
export const SNAPSHOT = {
  file: option('file', text('/var/lib/sluicegate/keys.snapshot'), {
    what: 'Keeps keys in memory over restarts in this file. Default: none, a restart forgets them.',
    example: 'keys.snapshot',
  }),
  everyMs: option('every', duration(1_000, 86_400_000), {
    what: 'How often it is written, 1 s to 24 h; also at the end.',
    standard: 60_000,
    example: '5m',
  }),
}

export type SnapshotConfig = ValuesOf<typeof SNAPSHOT>
