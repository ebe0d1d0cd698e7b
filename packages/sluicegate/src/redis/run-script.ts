import { onceInProcess } from '../once-in-process.js'
import type { CancelSignal } from '../shared/backend.js'
import type { KeyFault } from '../shared/call-guard.js'
import type { CommandRunner } from './command-runner.js'
import { hashSlot } from './hash-slot.js'
import { faultOf } from './server-fault.js'

/** A script and its SHA-1, by which a server that has run it knows it. */
export interface Script {
  readonly sha1: string
  readonly source: string
}

/** Scripts on their way in full, by hash and server: other calls that find one unknown wait for it. */
const underway = /* @__PURE__ */ onceInProcess('scripts under way', () => new WeakMap<CommandRunner, Map<string, Promise<void>>>())

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
    if (!call.maySayAgain(error)) throw faultOf(error)
    return call.afterRefusal(error).then(read, (again) => {
      throw faultOf(again)
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
  maySayAgain(error: unknown): boolean {
    return isUnknownScript(error) && this.signal?.aborted !== true
  }

  /** One call in full makes a script known: other calls that found it unknown at the same time use its hash again. */
  async afterRefusal(refusal: unknown): Promise<unknown> {
    const lesson = lessonsOf(this.runner).get(this.place)
    if (lesson !== undefined) {
      await lesson
      if (!this.maySayAgain(refusal)) throw refusal
      try {
        return await this.byHash()
      } catch (error) {
        if (!this.maySayAgain(error)) throw error
      }
    }
    return this.inFull()
  }

  private inFull(): Promise<unknown> {
    const { place } = this
    const lessons = lessonsOf(this.runner)
    const reply = this.runner.send(this.key, ['EVAL', this.script.source, ...this.more], this.signal)
    const lesson = reply.then(noMatterWhat, noMatterWhat).then(() => {
      if (lessons.get(place) === lesson) lessons.delete(place)
    })
    lessons.set(place, lesson)
    return reply
  }

  /** The script and the server, as far as it is known. */
  private get place(): string {
    const { runner, key, script } = this
    const slot = runner.isCluster ? hashSlot(/\{(.+?)\}/.exec(key)?.[1] ?? key) : undefined
    return `${script.sha1} ${slot === undefined ? '' : runner.serverOf(slot)}`
  }
}

function lessonsOf(runner: CommandRunner): Map<string, Promise<void>> {
  let lessons = underway.get(runner)
  if (lessons === undefined) {
    lessons = new Map()
    underway.set(runner, lessons)
  }
  return lessons
}

function noMatterWhat(): void {}

/** The server refused before the script ran. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && /^(?:NOSCRIPT |(?:An error was signalled by the server: - )?NoScriptError: )/.test(error.message)
}
