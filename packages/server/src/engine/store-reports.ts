import type { Log } from '../log.js'
import type { Storage } from './engine-limiter.js'
import { type StoreNews, StoreRefusal, type StoreWatch } from './store-watch.js'

/** How long the start waits for a store. Afterwards policies decide as `outage` says until it can be written. */
export const START_MS = 2_000
/** That of the library. */
export const DEFAULT_PREFIX = 'sluicegate'

/** What to do about a store that no connection leads to. */
export const CONNECT = 'see that its server runs, that its address is right, and that it can be reached from here'
const MENDS = {
  lost: CONNECT,
  silent: 'see its server, and what is between: connections are open, and nothing comes back',
  refused: undefined,
} as const
const HOW = { lost: 'cannot be reached', silent: 'does not answer', refused: 'refuses calls' } as const

/**
 * Puts in the log what a watch says.
 *
 * @param more figures of the moment.
 * @param meanwhile what happens without it.
 */
export function reportOf(log: Log, what: string, more: () => object = () => ({}), meanwhile = ''): (news: StoreNews) => void {
  return (news) => {
    const seconds = Math.round(news.outMs / 1000)
    if (news.isReachable) {
      log.info({ ...more(), seconds }, `${what} can be reached again`)
      return
    }
    const { error, kind } = news
    const mend = error instanceof StoreRefusal ? error.mend : MENDS[kind]
    const lasting = seconds > 0 ? { seconds } : {}
    log.warn(
      { err: { message: error.message }, ...(mend !== undefined && { mend }), ...more(), ...lasting },
      `${what} ${HOW[kind]}${meanwhile}`,
    )
  }
}

/** @throws {StoreRefusal} when the last answer was a refusal that does not pass by itself. */
export function throwRefusal(what: string, watch: StoreWatch | undefined): void {
  const { fault } = watch ?? {}
  if (!(fault instanceof StoreRefusal) || fault.isPassing) return
  const mend = fault.mend === undefined ? '' : `; ${fault.mend}`
  throw new StoreRefusal(`${what} refuses calls: ${fault.message}${mend}; with "refused-at-start: serve" the service starts all the same`, {
    cause: fault,
  })
}

/** A line for people while the store decides nothing; undefined otherwise. Its reason is for the log, not for everybody. */
export function storeNote({ isReachable, name }: Pick<Storage, 'isReachable' | 'name'>): string | undefined {
  return isReachable ? undefined : `degraded: ${name} does not decide, policies go by their outage option; the log says why`
}
