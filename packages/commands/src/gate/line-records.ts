import type { GateRecord } from 'sluicegate/gate'
import { FieldLines } from '../replay/field-lines.js'
import type { OnLine } from '../replay/line-splitter.js'
import { LogClock, type LogClockOptions } from '../replay/log-clock.js'
import type { LineTemplate } from '../replay/log-reader.js'
import { guessFormat, type LogReader, logReader } from '../replay/log-reader.js'
import type { KeyTemplate, RequestFilter } from '../replay/request-rule.js'
import { UsageError } from '../terminal/usage-error.js'

/** The user is asked for the format after this number of lines. */
const LINES_TO_GUESS_FROM = 100
/** From then on one line of so many is looked at: no format takes much longer than one. Lines may alternate, but not by this number. */
const LINES_TO_A_GUESS = 7
/** The most that a gate counts for one record. */
const MOST_COST = 2 ** 32 - 1

/** How late records may be, and the time that none is ahead of. */
export type RecordTimes = Pick<LogClockOptions<GateRecord>, 'lateMs' | 'nowMs'>

/** The times of records for a gate, which leaves out what is from before its window. */
export function recordClock(times: RecordTimes, onRecord: (record: GateRecord) => void): LogClock<GateRecord> {
  return new LogClock<GateRecord>({
    ...times,
    copyOf: (record) => record,
    onItem: (record, timeMs, ownMs) => onRecord({ ...record, timeMs: Math.min(timeMs, ownMs) }),
  })
}

/** What is read from a line. */
export interface LineRule {
  /** Undefined: known from the first lines. What stands before the format is known from them in any case. */
  readonly format: string | undefined
  /** What the time is made of; undefined: a variable that is known to be one. */
  readonly time: LineTemplate | undefined
  readonly key: KeyTemplate
  /** Undefined: all requests. */
  readonly filter: RequestFilter | undefined
  /** The variable that holds the cost; undefined: each request counts 1. */
  readonly cost: string | undefined
}

/** Counts of one log. */
export interface LineCounts {
  lines: number
  /** Lines of another form. */
  unreadable: number
  /** Requests without a key, or without a cost. */
  withoutKey: number
  /** Requests that were counted. */
  keyed: number
}

/** Makes records of the lines of one log. */
export class LineRecords {
  readonly counts: LineCounts = { lines: 0, unreadable: 0, withoutKey: 0, keyed: 0 }
  /** For {@link LineSplitter}. */
  readonly onLine: OnLine
  readonly #rule: LineRule
  readonly #clock: LogClock<GateRecord>
  readonly #onNotice: (text: string) => void
  readonly #fields = new FieldLines()
  /** Whether it was said that a column is missing. */
  #lacksColumns = false
  #reader: LogReader | undefined

  /** @throws {UsageError} for a format without a time, or without a variable that is needed. */
  constructor(rule: LineRule, times: RecordTimes, onRecord: (record: GateRecord) => void, onNotice: (text: string) => void) {
    this.#rule = rule
    this.#clock = recordClock(times, onRecord)
    this.#onNotice = onNotice
    this.onLine = (bytes, start, end) => this.#read(bytes, start, end)
    // A format that lacks something is a fault before the first line.
    if (rule.format !== undefined) this.#readerOf(rule.format)
  }

  /** Records of a wild time. */
  get wild(): number {
    return this.#clock.wild
  }

  /** What was there has been read: no record waits for others any longer. */
  settle(): void {
    this.#clock.settle()
  }

  /** The log has ended. */
  end(): void {
    this.#clock.end()
  }

  #read(bytes: Buffer, start: number, end: number): void {
    const { counts } = this
    if (this.#fields.read(bytes, start, end, this.#reader === undefined && this.#rule.format === undefined)) {
      this.#reader = undefined
      return
    }
    counts.lines++
    this.#reader ??= this.#guess(bytes, start, end)
    const isRead = this.#reader?.read(bytes, start, end) ?? false
    if (isRead === 'part') counts.lines--
    else if (!isRead) counts.unreadable++
    if (this.#reader === undefined || isRead !== true) return
    const { record } = this.#reader
    const { key: template, filter, cost: variable } = this.#rule
    if (filter !== undefined && !filter.matches(record)) return
    const key = template.keyOf(record)
    const cost = variable === undefined ? 1 : Math.min(Math.round(Number(record.value(variable))), MOST_COST)
    if (key === undefined || !(cost >= 1)) {
      counts.withoutKey++
      if (counts.keyed === 0 && counts.withoutKey === LINES_TO_GUESS_FROM)
        this.#onNotice(
          `none of ${LINES_TO_GUESS_FROM} requests has ${template.text}${variable === undefined ? '' : ` and a cost`}: name another with --key`,
        )
      return
    }
    counts.keyed++
    this.#clock.add({ key, cost }, record.timeMs)
  }

  #guess(bytes: Buffer, start: number, end: number): LogReader | undefined {
    const { lines } = this.counts
    const { format: given = this.#fields.formatOf(bytes, start, end), time } = this.#rule
    const isSeldom = lines > LINES_TO_GUESS_FROM && (given === undefined || given === this.#rule.format)
    if (isSeldom && lines % LINES_TO_A_GUESS !== 0) return undefined
    try {
      const format = guessFormat(bytes.subarray(start, end), { format: given, time })
      if (format !== undefined) return this.#readerOf(format)
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      // Of columns that lines of the log have named: of a format that was given it is known before.
      if (!this.#lacksColumns) this.#onNotice(error.message)
      this.#lacksColumns = true
    }
    if (lines === LINES_TO_GUESS_FROM) this.#onNotice(`none of ${LINES_TO_GUESS_FROM} lines can be read: give the format with --format`)
    return undefined
  }

  #readerOf(format: string): LogReader {
    const { key, filter, cost, time } = this.#rule
    return logReader(format, [...new Set([...key.names, ...(filter?.names ?? []), ...(cost === undefined ? [] : [cost])])], time)
  }
}
