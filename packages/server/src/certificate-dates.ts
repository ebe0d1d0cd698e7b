import { type TlsConfig, type Validity, validityNote } from 'sluicegate-config/tls.js'
import type { Log } from './log.js'
import { type Part, ticking } from './part.js'

const LOOK_MS = 3_600_000
const SAY_MS = 86_400_000

/** The certificates in force, by their dates. */
export interface CertificateDates extends Part {
  readonly validities: readonly Validity[]
}

/**
 * Says in the log that a certificate is not valid, or ends soon: at the start, after a reload, when it ends, and once a day.
 *
 * @param nowMs Unix milliseconds, for tests.
 */
export function certificateDates(log: Log, tls: TlsConfig | undefined, nowMs: () => number = Date.now): CertificateDates {
  let validities = tls?.validities ?? []
  const said = new Map<string, { readonly note: string; readonly atMs: number }>()
  const look = (): void => {
    const atMs = nowMs()
    for (const validity of validities) {
      const { option, file } = validity
      const note = validityNote(validity, atMs)
      const last = said.get(option)
      if (note === undefined || (note === last?.note && atMs < last.atMs + SAY_MS)) continue
      said.set(option, { note, atMs })
      log.warn({ file }, note)
    }
  }
  const looking = ticking('certificate dates', LOOK_MS, look)
  return {
    ...looking,
    get validities() {
      return validities
    },
    ready() {
      look()
      looking.ready?.()
    },
    reload: ({ tls: next }) => ({
      commit() {
        validities = next?.validities ?? validities
        said.clear()
        look()
      },
    }),
  }
}
