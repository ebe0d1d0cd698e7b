import { PolicyError } from 'sluicegate'
import { createGate, type Gate, type GateOptions, type GateRecord, type VerdictChange } from 'sluicegate/gate'
import { replaceFault } from 'sluicegate-config/read-file.js'
import { subnetOf } from '../replay/request-rule.js'
import { ServiceClient } from '../service/service-client.js'
import { LineOutput } from '../terminal/line-output.js'
import { checkOutput, outputFailed, printable, printableJson, UsageError, whenOutputFails } from '../terminal/usage-error.js'
import { type GateFlags, gateOptionsOf, integerOf, lineRuleOf, spanOf, tokenIn } from './gate-flags.js'
import { changeText, type GateScreen, type GateSummary, summaryText } from './gate-screen.js'
import { LineRecords, type RecordTimes } from './line-records.js'
import { LogFollower } from './log-follower.js'
import type { StreamFollower } from './stream-follower.js'
import { VerdictCalls } from './verdict-calls.js'
import { denyList, nginxGeo, nginxMap, VerdictFile } from './verdict-files.js'
import { VerdictOutputs } from './verdict-outputs.js'

const SUMMARY_MS = 1_000
const TOP_KEYS = 10
/** Beyond the window: servers write their logs in blocks. */
const LATE_MS = 60_000

/** A log or stream that is read on. */
interface Source {
  open(): Promise<void>
  poll(): Promise<void>
  end(): void
  close(): Promise<void>
}

/**
 * Follows logs or a stream, and writes verdicts, until it is interrupted; with `--once` to the end of the logs.
 *
 * @throws {UsageError} for options that do not fit, a log that cannot be read, or a file that cannot be written at the start.
 */
export async function runGate(flags: GateFlags, token: string | undefined, screen: GateScreen): Promise<void> {
  await new GateRun(flags, token, screen).run()
}

class GateRun {
  readonly #flags: GateFlags
  readonly #screen: GateScreen
  readonly #notices = LineOutput.to(
    2,
    (lost) => `sluicegate: ${lost} lines are lost: the error output had no room for them\n`,
    outputFailed,
  )
  readonly #intervalMs: number
  readonly #gate: Gate
  readonly #lines: LineRecords[] = []
  readonly #followers: LogFollower[] = []
  readonly #sources: Source[] = []
  readonly #outputs: VerdictOutputs
  /** Sources whose fault was reported. */
  readonly #failing = new Set<Source>()
  #stream: StreamFollower | undefined
  #isStopping = false
  /** What was there at the start has been read. */
  #isFollowing = false
  #wasBehind = false
  /** The newest record of the last poll. */
  #settledMs = Number.NaN
  readonly #windowMs: number
  #wake: () => void = () => undefined
  #newestMs = Number.NaN
  #summaryMs = Number.NEGATIVE_INFINITY
  #summaryRecords = 0

  constructor(flags: GateFlags, token: string | undefined, screen: GateScreen) {
    this.#flags = flags
    this.#screen = screen
    this.#intervalMs = spanOf('--interval', flags.interval)
    const options = gateOptionsOf(flags)
    // A log that has ended has its own time, wherever its zone puts it.
    const clock = flags.once === true && { clock: { nowMs: () => Math.max(wallMs(), this.#newestMs || 0) } }
    this.#gate = gateOf({ ...options, ...clock, topKeys: TOP_KEYS * 10, onVerdict: (change) => this.#show(change) })
    this.#outputs = outputsOf(flags, token, (text) => this.#notice(text))
    this.#windowMs = options.window as number
    this.#addLogs()
  }

  async run(): Promise<void> {
    const stop = (): void => {
      this.#isStopping = true
      this.#wake()
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    // Files are emptied in any case, and written by a run that reads once.
    whenOutputFails((isClosed) => {
      if (isClosed && this.#flags.once !== true) stop()
    })
    try {
      await this.#addStream()
      for (const source of this.#sources) await source.open()
      await (this.#flags.once ? this.#readOnce() : this.#follow())
    } finally {
      process.removeListener('SIGINT', stop)
      process.removeListener('SIGTERM', stop)
      for (const source of this.#sources) await source.close()
      this.#gate.close()
    }
  }

  /** Files are written at the end, and only by a run that could read: the ones that are there may be in use. */
  async #readOnce(): Promise<void> {
    for (const source of this.#sources) await source.poll()
    for (const source of this.#sources) source.end()
    this.#gate.flush()
    const fault = this.#isStopping ? 'interrupted before the end: no file is written' : this.#fault()
    try {
      if (fault !== undefined) throw new UsageError(fault, 1)
      await this.#outputs.writeLast(this.#gate.verdicts())
    } finally {
      this.#summarize(true)
    }
  }

  async #follow(): Promise<void> {
    // A file of an earlier run may block keys that no one would free.
    await this.#outputs.start()
    // A log that cannot be opened at the start is a mistake; later it may be a fault of the moment.
    for (const source of this.#sources) await this.#pollAgain(source)
    this.#settle()
    this.#isFollowing = true
    while (!this.#isStopping) {
      await this.#pause()
      for (const source of this.#sources) await this.#pollAgain(source)
      this.#settle()
    }
    await this.#outputs.settled()
    this.#summarize(true)
    await this.#outputs.clear()
    const fault = this.#fault()
    if (fault !== undefined) throw new UsageError(fault, 1)
  }

  #addLogs(): void {
    const { follow = [], redis, stream, fromStart = false, once } = this.#flags
    if (follow.length === 0 && stream === undefined) throw new UsageError('say what to follow: --follow FILE, or --redis URL --stream NAME')
    if ((stream === undefined) !== (redis === undefined)) throw new UsageError('a stream needs both --redis URL and --stream NAME')
    const rule = lineRuleOf(this.#flags)
    const onNotice = (text: string): void => this.#notice(text)
    const times = this.#times()
    for (const file of new Set(follow)) {
      const lines = new LineRecords(rule, times, (record) => this.#record(record), onNotice)
      const follower = new LogFollower({
        file,
        fromStart: fromStart || once === true,
        mustExist: once === true,
        isStopping: () => this.#isStopping,
        onLine: lines.onLine,
        onNotice,
      })
      this.#lines.push(lines)
      this.#followers.push(follower)
      this.#sources.push({
        open: () => follower.open(),
        poll: () => follower.poll().finally(() => lines.settle()),
        end: () => {
          follower.end()
          lines.end()
        },
        close: () => follower.close(),
      })
    }
  }

  /** A record that has just been written is not ahead of now. */
  #times(): RecordTimes {
    return { lateMs: this.#windowMs, nowMs: this.#flags.once === true ? undefined : wallMs }
  }

  /** The client of Redis takes longer to load than the rest of the command. */
  async #addStream(): Promise<void> {
    const { redis, stream, fromStart = false, once } = this.#flags
    if (stream === undefined || redis === undefined) return
    const { StreamFollower } = await import('./stream-follower.js')
    const follower = new StreamFollower({
      url: redis,
      stream,
      fromStart: fromStart || once === true,
      times: this.#times(),
      ipv6Subnet: subnetOf(this.#flags.ipv6Subnet),
      onRecord: (record) => this.#record(record),
      onNotice: (text) => this.#notice(text),
    })
    this.#stream = follower
    this.#sources.push({
      open: () => follower.open(),
      poll: () => follower.poll(),
      end: () => follower.end(),
      close: async () => follower.close(),
    })
  }

  #record({ key, cost, timeMs }: GateRecord): void {
    if (timeMs !== undefined && !(timeMs <= this.#newestMs)) this.#newestMs = timeMs
    this.#gate.record(key, cost, timeMs)
  }

  async #pollAgain(source: Source): Promise<void> {
    try {
      await source.poll()
      this.#failing.delete(source)
    } catch (error) {
      if (!this.#failing.has(source)) this.#notice((error as Error).message)
      this.#failing.add(source)
    }
  }

  /** A log whose times have no zone, or the wrong one, gets verdicts that are over before they begin. */
  #checkTimes(): void {
    const isNew = this.#newestMs !== this.#settledMs
    this.#settledMs = this.#newestMs
    const behindMs = wallMs() - this.#newestMs
    if (!this.#isFollowing || !isNew || this.#wasBehind || !(behindMs > this.#windowMs + LATE_MS)) return
    this.#wasBehind = true
    this.#notice(`new records are ${Math.round(behindMs / 1_000)} s behind the clock: do the times of the log have the right zone?`)
  }

  #settle(): void {
    this.#checkTimes()
    this.#gate.flush()
    this.#outputs.write(this.#gate.verdicts())
    this.#summarize(false)
  }

  /** Until the next poll, or until it is to stop. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#intervalMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#isStopping) this.#wake()
    })
  }

  #show(change: VerdictChange): void {
    if (this.#flags.json) this.#screen.write(`${printableJson({ event: 'verdict', ...timesOf(change) })}\n`)
    else if (!this.#screen.isTTY) this.#screen.write(changeText(change))
  }

  #summarize(isLast: boolean): void {
    const nowMs = performance.now()
    if (!isLast && (nowMs < this.#summaryMs + SUMMARY_MS || (!this.#flags.json && !this.#screen.isTTY))) return
    const stats = this.#gate.stats()
    const seconds = (nowMs - this.#summaryMs) / 1_000
    const summary: GateSummary = {
      time: new Date().toISOString(),
      recordsPerSecond: Number.isFinite(seconds) ? Math.round((stats.records - this.#summaryRecords) / seconds) : 0,
      lines: this.#sum(({ counts }) => counts.lines) + (this.#stream?.entries ?? 0),
      unreadable: this.#sum(({ counts }) => counts.unreadable) + this.#tooLong() + (this.#stream?.unreadable ?? 0),
      withoutKey: this.#sum(({ counts }) => counts.withoutKey),
      wild: this.#sum(({ wild }) => wild) + (this.#stream?.wild ?? 0),
      behindMs: Number.isNaN(this.#newestMs) ? null : Math.max(0, Math.round(wallMs() - this.#newestMs)),
      stats,
      top: this.#gate.top(TOP_KEYS),
      verdicts: this.#gate.verdicts(),
      written: this.#outputs.written,
      failed: this.#outputs.failed,
      leftOut: this.#outputs.leftOut,
    }
    this.#summaryMs = nowMs
    this.#summaryRecords = stats.records
    this.#screen.write(this.#flags.json ? `${printableJson({ event: 'summary', ...summary })}\n` : summaryText(summary, this.#screen))
  }

  /** Why a run had no key to count: it shows nothing. */
  #fault(): string | undefined {
    if (this.#gate.stats().records > 0) return undefined
    const lines = this.#sum(({ counts }) => counts.lines) + this.#tooLong()
    const withoutKey = this.#sum(({ counts }) => counts.withoutKey)
    const entries = this.#stream?.entries ?? 0
    if (entries > 0) return `none of ${entries} entries of the stream has a key and a cost`
    if (lines > 0 && lines === this.#sum(({ counts }) => counts.unreadable) + this.#tooLong())
      return `none of ${lines} lines could be read; give the format with --format`
    return withoutKey > 0
      ? `no line has a key: ${this.#flags.key} is empty in ${withoutKey} requests, or its cost; name another with --key`
      : undefined
  }

  #sum(of: (lines: LineRecords) => number): number {
    return this.#lines.reduce((sum, lines) => sum + of(lines), 0)
  }

  #tooLong(): number {
    return this.#followers.reduce((sum, { tooLong }) => sum + tooLong, 0)
  }

  #notice(text: string): void {
    this.#notices.write(`sluicegate: ${printable(text)}\n`)
  }
}

/** A clock that does not step, in Unix milliseconds. */
function wallMs(): number {
  return performance.timeOrigin + performance.now()
}

/** @throws {UsageError} for what the gate refuses. */
function gateOf(options: GateOptions): Gate {
  try {
    return createGate(options)
  } catch (error) {
    if (error instanceof PolicyError) throw new UsageError(`--${error.message}`)
    throw error
  }
}

function outputsOf(flags: GateFlags, token: string | undefined, onNotice: (text: string) => void): VerdictOutputs {
  const { nginxMap: mapFile, nginxGeo: geoFile, denyList: listFile, reload, reloadEvery, url, policy, penalty, tokenFile } = flags
  checkOutput('--nginx-map', mapFile, replaceFault)
  checkOutput('--nginx-geo', geoFile, replaceFault)
  checkOutput('--deny-list', listFile, replaceFault)
  const files = [
    ...(mapFile === undefined ? [] : [new VerdictFile(mapFile, nginxMap)]),
    ...(geoFile === undefined ? [] : [new VerdictFile(geoFile, nginxGeo)]),
    ...(listFile === undefined ? [] : [new VerdictFile(listFile, denyList)]),
  ]
  if (reload !== undefined && files.length === 0)
    throw new UsageError('--reload runs after a file has changed: give --nginx-geo, --nginx-map or --deny-list')
  if ((url === undefined) !== (policy === undefined)) throw new UsageError('calls of a service need both --url and --policy')
  if (penalty !== undefined && url === undefined) throw new UsageError('--penalty is sent to a service: give --url and --policy')
  const calls =
    url === undefined || policy === undefined
      ? undefined
      : new VerdictCalls(new ServiceClient(url, tokenFile === undefined ? token : tokenIn(tokenFile)), {
          policy,
          penalty: penalty === undefined ? undefined : integerOf('--penalty', penalty),
          nowMs: wallMs,
        })
  const isDry = flags.dryRun === true
  return new VerdictOutputs({
    files: isDry ? [] : files,
    calls: isDry ? undefined : calls,
    reload,
    reloadEveryMs: spanOf('--reload-every', reloadEvery),
    onNotice,
  })
}

function timesOf({ timeMs, untilMs, ...rest }: VerdictChange): object {
  return { time: new Date(timeMs).toISOString(), until: new Date(untilMs).toISOString(), ...rest }
}
