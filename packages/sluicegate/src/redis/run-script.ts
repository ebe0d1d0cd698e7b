import { onceInProcess } from '../once-in-process.js'
import type { CancelSignal } from '../shared/backend.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import type { CommandRunner } from './command-runner.js'
import { hashSlot } from './redis-keys.js'
import { warnOfAnswer } from './refusal-warnings.js'

/** A script and its SHA-1, by which a server that has run it knows it. */
export interface Script {
  readonly sha1: string
  readonly source: string
}

/** Loads in flight: scripts sent in full, by hash and server. Other calls that find one unknown wait for it. */
const loadsByRunner = /* @__PURE__ */ onceInProcess('scripts under way', () => new WeakMap<CommandRunner, Map<string, Promise<void>>>())

/**
 * Runs a script by its hash, and once in full when the server does not know it. So scripts need no loading: a server that lost them (SCRIPT
 * FLUSH, a failover, a restart) or never had them (a new shard) gets them with the first call.
 *
 * Rejects with a {@link KeyFault} when the server is well and cannot decide about these keys, else with the runner's error.
 *
 * @param read decodes a reply.
 */
export function runScript<Answer>(
  runner: CommandRunner,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  read: (reply: unknown) => Answer,
  signal?: CancelSignal,
): Promise<Answer> {
  const command = ['EVALSHA', script.sha1, String(keys.length), ...keys, ...args]
  return runner.send(keys[0] as string, command, signal).then(read, (error) => {
    const call = new ScriptCall(runner, script, keys, args, signal)
    if (!call.mayRetry(error)) throw faultAt(runner, error)
    return call.retried(error).then(read, (again) => {
      throw faultAt(runner, again)
    })
  })
}

class ScriptCall {
  private readonly runner: CommandRunner
  private readonly script: Script
  private readonly key: string
  private readonly more: readonly string[]
  private readonly signal: CancelSignal | undefined

  constructor(runner: CommandRunner, script: Script, keys: readonly string[], args: readonly string[], signal: CancelSignal | undefined) {
    this.runner = runner
    this.script = script
    this.key = keys[0] as string
    this.more = [String(keys.length), ...keys, ...args]
    this.signal = signal
  }

  private byHash(): Promise<unknown> {
    return this.runner.send(this.key, ['EVALSHA', this.script.sha1, ...this.more], this.signal)
  }

  /** The script did not run, and a caller still waits. */
  mayRetry(error: unknown): boolean {
    return isUnknownScript(error) && this.signal?.aborted !== true
  }

  /** One call in full makes a script known: other calls that found it unknown at the same time use its hash again. */
  async retried(refusal: unknown): Promise<unknown> {
    const load = loadsOf(this.runner).get(this.place)
    if (load !== undefined) {
      await load
      if (!this.mayRetry(refusal)) throw refusal
      try {
        return await this.byHash()
      } catch (error) {
        if (!this.mayRetry(error)) throw error
      }
    }
    return this.inFull()
  }

  private inFull(): Promise<unknown> {
    const { place } = this
    const loads = loadsOf(this.runner)
    const reply = this.runner.send(this.key, ['EVAL', this.script.source, ...this.more], this.signal)
    const load = reply.then(noMatterWhat, noMatterWhat).then(() => {
      if (loads.get(place) === load) loads.delete(place)
    })
    loads.set(place, load)
    return reply
  }

  /** The script and the server, as far as it is known. */
  private get place(): string {
    const { runner, key, script } = this
    const slot = runner.isCluster ? hashSlot(/\{(.+?)\}/.exec(key)?.[1] ?? key) : undefined
    return `${script.sha1} ${slot === undefined ? '' : runner.serverOf(slot)}`
  }
}

function loadsOf(runner: CommandRunner): Map<string, Promise<void>> {
  let loads = loadsByRunner.get(runner)
  if (loads === undefined) {
    loads = new Map()
    loadsByRunner.set(runner, loads)
  }
  return loads
}

function noMatterWhat(): void {}

/** The server refused before the script ran. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && /^(?:NOSCRIPT |(?:An error was signalled by the server: - )?NoScriptError: )/.test(error.message)
}

/** Errors by which a server cannot serve now, here or this client. glide words some differently. */
const OUT: ReadonlySet<string> = new Set([
  'ASK',
  'AUTHENTICATIONFAILED',
  'BUSY',
  'BUSYLOADING',
  'CLUSTERDOWN',
  'DENIED',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'OOM',
  'READONLY',
  'UNKILLABLE',
  'WRONGPASS',
])

/** The same, without an error code of their own. */
const OUT_IN_WORDS = /unknown command|can't run this command|no permissions to run|max number of clients|cluster support disabled/i
/** The missing permission is one for a key. */
const OF_A_KEY = /no permissions to access/i
/** An error reply begins with its code; errors of clients do not. */
const CODE = /^(?:([A-Z][A-Z0-9]{2,}):? |An error was signalled by the server: - ([A-Za-z]+): )/
/** Redis before 7 puts the code of an error within a script further on. */
const CODE_WITHIN = /: -([A-Z]{3,}) /

/**
 * Classifies an error of a client: a {@link KeyFault} when a server answered with an error that does not mean that it cannot serve; else the
 * error itself.
 */
export function faultOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { message } = error
  const [, code, word] = CODE.exec(message) ?? []
  const said = code ?? word
  if (said === undefined) return error
  const [, within] = CODE_WITHIN.exec(message) ?? []
  const isOut = isOfServer(said) || (within !== undefined && isOfServer(within)) || OUT_IN_WORDS.test(message)
  return isOut && !OF_A_KEY.test(message) ? error : new KeyFault(message, { cause: error })
}

/** The same, with a warning of what does not pass by itself. */
function faultAt(runner: CommandRunner, error: unknown): unknown {
  const fault = faultOf(error)
  if (fault instanceof Error) warnOfAnswer(runner, fault)
  return fault
}

function isOfServer(code: string): boolean {
  return OUT.has(code.toUpperCase().replace(/ERROR$/, ''))
}
