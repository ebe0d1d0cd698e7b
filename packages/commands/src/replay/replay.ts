import { type ManualClock, manualClock } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { UsageError } from '../terminal/usage-error.js'
import { type Denial, type PolicyResult, ReplayedPolicy } from './candidate.js'
import { FieldLines } from './field-lines.js'
import { LineSplitter } from './line-splitter.js'
import { LogClock } from './log-clock.js'
import type { LineTemplate } from './log-reader.js'
import { guessFormat, type LogReader, type LogRecord, logReader } from './log-reader.js'
import { PEAK_PERCENTILES, PeakRates, type PeakRow } from './peak-rates.js'
import type { KeyTemplate, RequestRule } from './request-rule.js'
import { Timeline } from './timeline.js'

/** The format cannot be known from lines that are all damaged. */
const LINES_TO_GUESS_FROM = 100
/** Patterns of agreement are counted for every combination of them. */
const MAX_CANDIDATES = 8
/** Lines that are later than this are no lines of slow requests, nor of servers that write their logs in blocks. */
const LATE_MS = 600_000

/** A configuration to try, under the name by which the report shows it. */
export interface CandidateConfig {
  readonly name: string
  readonly policies: readonly PolicyConfig[]
  readonly ruleOf: (policy: string) => RequestRule
}

export interface ReplayOptions {
  readonly candidates: readonly CandidateConfig[]
  /** Undefined: known from the first lines. What stands before the format is known from them in any case. */
  readonly format: string | undefined
  /** What the time is made of; undefined: a variable that is known to be one. */
  readonly time?: LineTemplate | undefined
  /** By which limits are suggested. */
  readonly key: KeyTemplate
  /** Called for each denial, in the order of the log. */
  readonly onDenial?: (denial: Denial) => void
}

/** What a whole log would have met. */
export interface ReplayResult {
  readonly lines: number
  /** Lines of another form, and lines that are too long. */
  readonly unreadableLines: number
  /** Lines whose time is before the one above; they count at the later time, as a live limiter would see them. */
  readonly lateLines: number
  readonly latestByMs: number
  /** Lines whose time is far from that of the others around them; they count at the time of the others. */
  readonly wildLines: number
  /** How often the clock that wrote the log was set back; time goes on where it was. */
  readonly clockSteps: number
  readonly format: string
  readonly firstTime: string | null
  readonly lastTime: string | null
  readonly candidates: readonly CandidateResult[]
  /** How many requests were denied by exactly these configurations. */
  readonly agreement: readonly { readonly deniedBy: readonly string[]; readonly requests: number }[]
  readonly peaks: {
    readonly key: string
    readonly sampledKeys: number
    readonly chance: number
    readonly percentiles: readonly number[]
    readonly rows: readonly PeakRow[]
  }
  readonly timeline: ReplayTimeline
}

export interface CandidateResult {
  readonly config: string
  /** Requests that no policy denied. */
  readonly allowed: number
  readonly denied: number
  readonly policies: readonly PolicyResult[]
}

/** Requests and denials in points of equal width. */
export interface ReplayTimeline {
  readonly startMs: number
  readonly pointMs: number
  readonly requests: readonly number[]
  /** For each candidate. */
  readonly denied: readonly (readonly number[])[]
}

/**
 * Feeds the lines of access logs to limiters whose clock is the log's time. Memory is constant: it depends on the policies' tables, not on
 * the length of the log.
 */
export class Replay {
  readonly #options: ReplayOptions
  readonly #clock: ManualClock = manualClock(0)
  readonly #policies: readonly (readonly ReplayedPolicy[])[]
  readonly #splitter: LineSplitter
  readonly #timeline: Timeline
  readonly #peaks = new PeakRates()
  readonly #deniedBy: Float64Array
  #reader: LogReader | undefined
  readonly #fields = new FieldLines()
  readonly #times = new LogClock<LogRecord>({
    lateMs: LATE_MS,
    copyOf: (record) => this.#copyOf(record),
    onItem: (record, timeMs) => this.#replayRecord(record, timeMs),
  })
  /** The variables that are read of each record. */
  #needed: ReadonlySet<string> = new Set()
  #format = ''
  #lines = 0
  #unreadable = 0
  #late = 0
  #latestByMs = 0
  #firstMs = Number.NaN
  #nowMs = Number.NEGATIVE_INFINITY

  constructor(options: ReplayOptions) {
    const { candidates } = options
    if (candidates.length > MAX_CANDIDATES) throw new UsageError(`--config: at most ${MAX_CANDIDATES} files can be compared`)
    this.#options = options
    this.#policies = candidates.map(({ policies, ruleOf }) =>
      policies.map((config) => new ReplayedPolicy(config, ruleOf(config.policy.name), this.#clock)),
    )
    this.#timeline = new Timeline(1 + candidates.length)
    this.#deniedBy = new Float64Array(2 ** candidates.length)
    this.#splitter = new LineSplitter((bytes, start, end) => this.#replayLine(bytes, start, end))
    // A format that lacks something is a fault before the first line.
    if (options.format !== undefined) this.#readerOf(options.format)
  }

  get lines(): number {
    return this.#lines
  }

  write(chunk: Buffer): void {
    this.#splitter.write(chunk)
  }

  /** Between two files: the last line of the one is no beginning of the other. */
  endOfFile(): void {
    this.#splitter.endOfFile()
    this.#times.end()
  }

  close(): void {
    for (const policies of this.#policies) for (const policy of policies) policy.close()
  }

  result(): ReplayResult {
    const { candidates, key } = this.#options
    const names = candidates.map(({ name }) => name)
    const denials = candidates.map((_, i) => this.#deniedBy.reduce((sum, count, pattern) => sum + ((pattern >> i) & 1 ? count : 0), 0))
    const read = this.#lines - this.#unreadable - this.#splitter.tooLong
    const timeText = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null)
    return {
      lines: this.#lines,
      unreadableLines: this.#unreadable + this.#splitter.tooLong,
      lateLines: this.#late,
      latestByMs: this.#latestByMs,
      wildLines: this.#times.wild,
      clockSteps: this.#times.steps,
      format: this.#format,
      firstTime: timeText(this.#firstMs),
      lastTime: timeText(this.#nowMs),
      candidates: candidates.map(({ name }, i) => ({
        config: name,
        allowed: read - (denials[i] as number),
        denied: denials[i] as number,
        policies: (this.#policies[i] as readonly ReplayedPolicy[]).map((policy) => policy.result()),
      })),
      agreement: Array.from(this.#deniedBy, (requests, pattern) => ({
        deniedBy: names.filter((_, i) => (pattern >> i) & 1),
        requests,
      })).filter(({ requests }) => requests > 0),
      peaks: {
        key: key.text,
        sampledKeys: this.#peaks.sampledKeys,
        chance: this.#peaks.chance,
        percentiles: PEAK_PERCENTILES,
        rows: this.#peaks.rows(),
      },
      timeline: {
        startMs: this.#timeline.startMs,
        pointMs: this.#timeline.pointMs,
        requests: this.#timeline.counts(0),
        denied: candidates.map((_, i) => this.#timeline.counts(i + 1)),
      },
    }
  }

  #replayLine(bytes: Buffer, start: number, end: number): void {
    if (this.#fields.read(bytes, start, end, this.#reader === undefined && this.#options.format === undefined)) {
      this.#reader = undefined
      return
    }
    this.#lines++
    const reader = this.#reader ?? this.#guess(bytes, start, end)
    const isRead = reader?.read(bytes, start, end) ?? false
    if (isRead === 'part') this.#lines--
    else if (!isRead) this.#unreadable++
    if (reader === undefined || isRead !== true) return
    this.#times.add(reader.record, reader.record.timeMs)
  }

  #replayRecord(record: LogRecord, timeMs: number): void {
    this.#advance(timeMs)
    const key = this.#options.key.keyOf(record)
    if (key !== undefined) this.#peaks.add(key, this.#nowMs)
    const point = this.#timeline.pointOf(this.#nowMs)
    this.#timeline.add(0, point)
    let pattern = 0
    for (let i = 0; i < this.#policies.length; i++) {
      let denied = false
      for (const policy of this.#policies[i] as readonly ReplayedPolicy[]) {
        if (policy.take(record, this.#nowMs)) continue
        denied = true
        this.#options.onDenial?.(policy.denial((this.#options.candidates[i] as CandidateConfig).name, this.#nowMs))
      }
      if (!denied) continue
      pattern |= 1 << i
      this.#timeline.add(i + 1, point)
    }
    this.#deniedBy[pattern] = (this.#deniedBy[pattern] as number) + 1
  }

  #copyOf(record: LogRecord): LogRecord {
    const values = new Map(Array.from(this.#needed, (name) => [name, record.value(name)]))
    return { timeMs: record.timeMs, value: (name) => values.get(name) ?? '' }
  }

  /** Servers write a line when a response ends, so that times of neighbours may step back a little. */
  #advance(timeMs: number): void {
    if (timeMs > this.#nowMs) {
      if (Number.isNaN(this.#firstMs)) this.#firstMs = timeMs
      this.#nowMs = timeMs
      this.#clock.set(timeMs)
    } else if (timeMs < this.#nowMs) {
      this.#late++
      this.#latestByMs = Math.max(this.#latestByMs, this.#nowMs - timeMs)
    }
  }

  #guess(bytes: Buffer, start: number, end: number): LogReader | undefined {
    const { format: given = this.#fields.formatOf(bytes, start, end), time } = this.#options
    const format = guessFormat(bytes.subarray(start, end), { format: given, time })
    if (format !== undefined) {
      this.#format = format
      this.#reader = this.#readerOf(format)
      return this.#reader
    }
    if (this.#lines < LINES_TO_GUESS_FROM || given !== undefined) return undefined
    throw new UsageError(
      `none of the first ${LINES_TO_GUESS_FROM} lines is in the common, combined or HAProxy format or JSON, below a line #Fields: or behind syslog or of a container: give the format with --format, as nginx's log_format or Apache's LogFormat writes it`,
      1,
    )
  }

  #readerOf(format: string): LogReader {
    const needed = new Set(this.#options.key.names)
    for (const { policies, ruleOf } of this.#options.candidates)
      for (const { policy } of policies) {
        const { key, filter } = ruleOf(policy.name)
        for (const name of [...key.names, ...(filter?.names ?? [])]) needed.add(name)
      }
    this.#needed = needed
    return logReader(format, [...needed], this.#options.time)
  }
}
