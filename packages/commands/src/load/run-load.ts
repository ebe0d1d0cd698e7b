import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { UsageError } from '../terminal/usage-error.js'
import { type LoadInterval, receivedInterval, type SentInterval, sentInterval } from './load-interval.js'
import type { LoadPlan, LoadTarget, OpenEngine, TargetPlan } from './load-plan.js'
import { type LoadResult, type LoadSecond, LoadTotals } from './load-result.js'
import { type LoadAnswer, LoadRun, processClock } from './load-run.js'

/**
 * Opens what receives the load. Only the chosen client is loaded: the others would take longer to load than a short run lasts.
 *
 * @throws {UsageError} for a plan that does not fit the target.
 */
async function makeTarget(plan: TargetPlan, openEngine: OpenEngine): Promise<LoadTarget> {
  switch (plan.kind) {
    case 'http':
      return (await import('./targets/http-target.js')).httpTarget(plan)
    case 'resp':
      return (await import('./targets/resp-target.js')).respTarget(plan)
    case 'grpc':
      return (await import('./targets/grpc-target.js')).grpcTarget(plan)
    case 'memory':
    case 'redis':
      return openEngine(plan)
  }
}

const RECORD_CHARACTERS = 65_536

/** What a process of the load reports. */
export type LoadMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'second'; readonly second: number; readonly interval: SentInterval }
  | { readonly kind: 'done'; readonly seconds: number; readonly errors: readonly (readonly [text: string, count: number])[] }
  | { readonly kind: 'failed'; readonly message: string }

/** What it receives. */
export type LoadOrder = { readonly kind: 'plan'; readonly plan: LoadPlan; readonly index: number } | { readonly kind: 'start' | 'stop' }

/** What a load needs of the program that it belongs to. */
export interface LoadProgram {
  readonly openEngine: OpenEngine
  /** The file that a process of the load runs: it calls `serveLoadProcess`. */
  readonly processFile: string
}

/** A run of load that goes on. */
export interface RunningLoad {
  readonly result: Promise<LoadResult>
  /** Sends no more; the result follows. */
  stop(): void
}

/**
 * Starts the load in this process, or in processes of its own.
 *
 * @param onSecond called for each second that all processes have ended.
 */
export function startLoad(plan: LoadPlan, program: LoadProgram, onSecond: (second: LoadSecond) => void = () => undefined): RunningLoad {
  const totals = new LoadTotals(plan.processes)
  const add = (second: number, interval: LoadInterval): void => {
    const closed = totals.add(second, interval)
    if (closed !== undefined) onSecond(closed)
  }
  return plan.processes === 1 ? inThisProcess(plan, program, totals, add) : inProcesses(plan, program, totals, add)
}

function inThisProcess(
  plan: LoadPlan,
  { openEngine }: LoadProgram,
  totals: LoadTotals,
  add: (second: number, interval: LoadInterval) => void,
): RunningLoad {
  let stop = (): void => undefined
  let isStopped = false
  const result = async (): Promise<LoadResult> => {
    const share = await prepareShare(plan, openEngine, 0, add)
    stop = () => share.run.stop()
    const ended = share.run.run()
    if (isStopped) stop()
    await ended
    const errors = await share.close()
    return totals.result(plan, share.run.seconds, errors)
  }
  return {
    result: result(),
    stop: () => {
      isStopped = true
      stop()
    },
  }
}

function inProcesses(
  plan: LoadPlan,
  { processFile }: LoadProgram,
  totals: LoadTotals,
  add: (second: number, interval: LoadInterval) => void,
): RunningLoad {
  const children = Array.from({ length: plan.processes }, () => fork(processFile))
  const send = (child: ChildProcess, order: LoadOrder): void => {
    if (child.connected) child.send(order, () => undefined)
  }
  const errors = new Map<string, number>()
  let ready = 0
  let longestS = 0
  const ends = children.map(
    (child, index) =>
      new Promise<void>((resolve, reject) => {
        child.on('message', (message: LoadMessage) => {
          if (message.kind === 'second') add(message.second, receivedInterval(message.interval))
          else if (message.kind === 'failed') reject(new UsageError(message.message, 1))
          else if (message.kind === 'done') {
            for (const [text, count] of message.errors) errors.set(text, (errors.get(text) ?? 0) + count)
            longestS = Math.max(longestS, message.seconds)
            resolve()
          } else if (++ready === children.length) {
            for (const each of children) send(each, { kind: 'start' })
          }
        })
        child.once('exit', (code) => reject(new UsageError(`a process of the load ended (${code})`, 1)))
        send(child, { kind: 'plan', plan, index })
      }),
  )
  const result = async (): Promise<LoadResult> => {
    try {
      await Promise.all(ends)
      return totals.result(plan, longestS, errors)
    } finally {
      for (const child of children) child.kill('SIGKILL')
    }
  }
  return {
    result: result(),
    stop: () => {
      for (const child of children) send(child, { kind: 'stop' })
    },
  }
}

/** One process's share of the load, ready to run. */
export interface PreparedShare {
  readonly run: LoadRun
  /** Closes the target; resolves with failures by their text. */
  close(): Promise<ReadonlyMap<string, number>>
}

/** @throws {UsageError} for a target or keys that cannot be used. */
export async function prepareShare(
  plan: LoadPlan,
  openEngine: OpenEngine,
  index: number,
  onInterval: (second: number, interval: LoadInterval) => void,
): Promise<PreparedShare> {
  const target = await makeTarget(plan.target, openEngine)
  const record = plan.record === undefined ? undefined : new Recorder(plan.record)
  const watcher = {
    interval: onInterval,
    warmedUp: () => target.errors.counts.clear(),
    ...(record && { answer: (answer: LoadAnswer) => record.add(answer) }),
  }
  const share = { index, of: plan.processes }
  const run = new LoadRun(plan, target, processClock(), watcher, share)
  return {
    run,
    async close() {
      record?.close()
      await target.close()
      return target.errors.counts
    },
  }
}

export function reportSecond(second: number, interval: LoadInterval): LoadMessage {
  return { kind: 'second', second, interval: sentInterval(interval) }
}

/** Appends answers to a file: sent and answered in microseconds of the machine's monotonic clock, outcome, key. */
class Recorder {
  readonly #file: number
  /** From the clock of this process to that of the machine, which all processes share. */
  readonly #originUs = Number(process.hrtime.bigint() / 1_000n) - Math.round(performance.now() * 1_000)
  #text = ''

  constructor(path: string) {
    try {
      this.#file = openSync(path, 'a')
    } catch (error) {
      throw new UsageError(`--record: ${(error as Error).message}`, 1)
    }
  }

  add({ sentMs, answeredMs, outcome, key }: LoadAnswer): void {
    const us = (ms: number): number => this.#originUs + Math.round(ms * 1_000)
    this.#text += `${us(sentMs)}\t${us(answeredMs)}\t${outcome}\t${key}\n`
    if (this.#text.length >= RECORD_CHARACTERS) this.#flush()
  }

  close(): void {
    this.#flush()
    closeSync(this.#file)
  }

  #flush(): void {
    // Appended as a whole, so that processes may share the file.
    writeSync(this.#file, this.#text)
    this.#text = ''
  }
}
