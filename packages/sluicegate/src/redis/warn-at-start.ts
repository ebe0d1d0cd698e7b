import { onceInProcess } from '../once-in-process.js'
import type { CommandRunner } from './command-runner.js'

/** 6.2 added `SET ... PXAT`, which gives every key its expiry, and streams trimmed by time. */
const OLDEST = [6, 2] as const

/** A fault in a server's configuration: one process warning for each server and code. */
export type ServerWarning = 'SLUICEGATE_EVICTION' | 'SLUICEGATE_NO_ERROR_LISTENER' | 'SLUICEGATE_OLD_SERVER' | 'SLUICEGATE_REPLICA'

type Warn = (message: string, code: ServerWarning) => void

/** Runners whose servers were checked: further limiters on a client check nothing. */
const checked = /* @__PURE__ */ onceInProcess('servers checked', () => new WeakSet<CommandRunner>())
/** Clients whose listeners were checked. */
const unheard = /* @__PURE__ */ onceInProcess('clients checked', () => new WeakSet<CommandRunner>())
/** Servers and codes with a warning. */
const warned = /* @__PURE__ */ onceInProcess('servers warned of', () => new Set<string>())

/** Checks each server once and warns of faults. What a server refuses to say is no fault. */
export async function warnAtStart(runner: CommandRunner, warn: Warn = emitWarning): Promise<void> {
  if (checked.has(runner)) return
  checked.add(runner)
  try {
    for (const reply of await runner.sendToAll(['INFO'])) {
      if (typeof reply === 'string') warnOf(fieldsOf(reply), warn)
    }
  } catch {
    // The next limiter may check again.
    checked.delete(runner)
  }
}

/**
 * Checks that a client of node-redis has a listener for `error`: without one, the first lost connection ends the process. The check runs in a
 * later turn, since the listener may be added after the limiter.
 */
export function warnOfUnheardErrors(runner: CommandRunner, client: unknown, warn: Warn = emitWarning): void {
  const { listenerCount } = client as { readonly listenerCount?: unknown }
  if (runner.client !== 'node-redis' || typeof listenerCount !== 'function' || unheard.has(runner)) return
  unheard.add(runner)
  setTimeout(() => {
    if (listenerCount.call(client, 'error') > 0) return
    const mend = "call client.on('error', () => {}), or log the error in it"
    warn(
      `a client of node-redis has no listener for 'error', without which Node ends the process when a connection is lost: ${mend}`,
      'SLUICEGATE_NO_ERROR_LISTENER',
    )
  })
}

function warnOf(server: ReadonlyMap<string, string>, warn: Warn): void {
  const where = `the server on port ${server.get('tcp_port') ?? 'unknown'}`
  const tell = (message: string, code: ServerWarning): void => {
    const name = `${server.get('run_id') ?? where} ${code}`
    if (warned.has(name)) return
    warned.add(name)
    warn(`${where} ${message}`, code)
  }
  const policy = server.get('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    tell(
      `evicts keys when its memory is full (${policy}), and with them what was spent: set maxmemory-policy noeviction`,
      'SLUICEGATE_EVICTION',
    )
  }
  // Valkey always says 7.2.4 here, which is new enough.
  const version = server.get('redis_version')
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
  if (version !== undefined && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))) {
    tell(`is of version ${version}; scripts need ${OLDEST.join('.')} or later`, 'SLUICEGATE_OLD_SERVER')
  }
  if (server.get('role') === 'slave') tell('is a replica, which takes no writes: connect to the primary', 'SLUICEGATE_REPLICA')
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

function emitWarning(message: string, code: ServerWarning): void {
  globalThis.process?.emitWarning?.(message, { type: 'SluicegateWarning', code })
}
