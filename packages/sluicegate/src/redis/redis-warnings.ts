import { onceInProcess } from '../once-in-process.js'
import { isUnconnected } from '../shared/calls/unconnected.js'
import { afterUnheld } from '../time/clock.js'
import { emitWarning, isFirstWarning, type StoreWarning } from '../warn-once.js'
import type { CommandRunner } from './command-runner.js'

/** 6.2 added `SET ... PXAT`, which gives every key its expiry, and streams trimmed by time. */
const OLDEST = [6, 2] as const

/** Servers that are remembered for each code. */
const MOST_SERVERS = 1_000

/** Pauses before a client that had no connection is asked again. */
const AGAIN_MS = { first: 250, most: 60_000 } as const

type WarnOfServer = (message: string, code: StoreWarning) => void

/** Runners whose servers were checked: further limiters on a client check nothing. */
const checked = /* @__PURE__ */ onceInProcess('servers checked', () => new WeakSet<CommandRunner>())
/** Clients whose listeners were checked. */
const checkedClients = /* @__PURE__ */ onceInProcess('clients checked', () => new WeakSet<CommandRunner>())

/** Checks each server once and warns of faults; a client without a connection as soon as it has one. What a server refuses to say is no fault. */
export async function warnAtStart(
  runner: CommandRunner,
  warn: WarnOfServer = emitted,
  after = afterUnheld,
  pauseMs: number = AGAIN_MS.first,
): Promise<void> {
  if (checked.has(runner)) return
  checked.add(runner)
  try {
    const replies = await runner.sendToAll(['INFO'])
    for (const reply of replies) if (typeof reply === 'string') warnOf(fieldsOf(reply), warn)
    if (replies.length > 0) return
  } catch (error) {
    if (!isUnconnected(error)) {
      // The next limiter may check again.
      checked.delete(runner)
      return
    }
  }
  // A client that was dropped is not to be kept.
  const weak = new WeakRef(runner)
  after(pauseMs, () => {
    const asked = weak.deref()
    if (asked === undefined) return
    checked.delete(asked)
    void warnAtStart(asked, warn, after, Math.min(AGAIN_MS.most, 2 * pauseMs))
  })
}

/**
 * Checks that a client of node-redis has a listener for `error`: without one, the first lost connection ends the process. The check runs in a
 * later turn, since the listener may be added after the limiter.
 */
export function warnOfMissingListener(runner: CommandRunner, client: unknown, warn: WarnOfServer = emitted): void {
  const { listenerCount } = client as { readonly listenerCount?: unknown }
  if (runner.client !== 'node-redis' || typeof listenerCount !== 'function' || checkedClients.has(runner)) return
  checkedClients.add(runner)
  setTimeout(() => {
    if (listenerCount.call(client, 'error') > 0) return
    const mend = "call client.on('error', () => {}), or log the error in it"
    warn(
      `a client of node-redis has no listener for 'error', without which Node ends the process when a connection is lost: ${mend}`,
      'SLUICEGATE_NO_ERROR_LISTENER',
    )
  })
}

function warnOf(server: ReadonlyMap<string, string>, warn: WarnOfServer): void {
  const where = `the server on port ${server.get('tcp_port') ?? 'unknown'}`
  const warnOnceOf = (message: string, code: StoreWarning): void => {
    if (isFirstWarning(code, server.get('run_id') ?? where, MOST_SERVERS)) warn(`${where} ${message}`, code)
  }
  const policy = server.get('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    warnOnceOf(
      `evicts keys when its memory is full (${policy}), and with them what was spent: set maxmemory-policy noeviction`,
      'SLUICEGATE_EVICTION',
    )
  }
  // Valkey always says 7.2.4 here, which is new enough.
  const version = server.get('redis_version')
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
  if (version !== undefined && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))) {
    warnOnceOf(`is of version ${version}; scripts need ${OLDEST.join('.')} or later`, 'SLUICEGATE_OLD_SERVER')
  }
  if (server.get('role') === 'slave') warnOnceOf('is a replica, which takes no writes: connect to the primary', 'SLUICEGATE_REPLICA')
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

function emitted(message: string, code: StoreWarning): void {
  emitWarning(code, message)
}
