import { createClient } from '@redis/client'
import type { GateRecord } from 'sluicegate/gate'
import { clientNetwork, fittedKey } from 'sluicegate/keys'
import type { LogClock } from '../replay/log-clock.js'
import { UsageError } from '../terminal/usage-error.js'
import { type RecordTimes, recordClock } from './line-records.js'

const ENTRIES_PER_READ = 5_000
const MOST_COST = 2 ** 32 - 1
const CONNECT_MS = 5_000
const START = '0-0'

/** How a stream is followed. */
export interface StreamOptions {
  /** `redis://...`, `rediss://...` */
  readonly url: string
  readonly stream: string
  /** False: from the newest entry on. */
  readonly fromStart: boolean
  readonly times: RecordTimes
  /** Bits of IPv6 by which a key that is an address is counted. */
  readonly ipv6Subnet: number
  readonly onRecord: (record: GateRecord) => void
  readonly onNotice: (text: string) => void
}

/** Records out of a stream of Redis or Valkey, whose entries have the fields `key` and, if they like, `cost`. Their time is that of their id. */
export class StreamFollower {
  /** Entries without a key, or whose cost is no number from 1. */
  unreadable = 0
  entries = 0
  readonly #options: StreamOptions
  readonly #client
  readonly #clock: LogClock<GateRecord>
  readonly #networkOf: (text: string) => string | undefined
  #lastId: string | undefined
  #isFailing = false

  constructor(options: StreamOptions) {
    this.#options = options
    this.#clock = recordClock(options.times, options.onRecord)
    this.#networkOf = clientNetwork({ ipv6Subnet: options.ipv6Subnet })
    // A stream may be away for a while: commands fail at once then, and the next poll tries again.
    this.#client = createClient({ url: options.url, disableOfflineQueue: true, socket: { connectTimeout: CONNECT_MS } })
    this.#client.on('error', (error: Error) => this.#failed(error))
    if (options.fromStart) this.#lastId = START
  }

  /** Records of a wild time. */
  get wild(): number {
    return this.#clock.wild
  }

  /** Connects, and finds the entry to begin at. @throws {UsageError} when the server cannot be reached. */
  async open(): Promise<void> {
    await this.#connect()
    this.#lastId ??= await this.#newestId()
  }

  async #connect(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${CONNECT_MS} ms`)), CONNECT_MS)
    })
    try {
      await Promise.race([this.#client.connect(), late])
    } catch (error) {
      this.#client.destroy()
      throw new UsageError(`the server of the stream cannot be reached: ${(error as Error).message}`, 1)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Reads the entries that were added since the last poll. An outage is reported once, and reading goes on after it. */
  async poll(): Promise<void> {
    try {
      this.#lastId ??= await this.#newestId()
      for (;;) {
        const read = await this.#readOn()
        if (read === ENTRIES_PER_READ) continue
        if (read === 0) await this.#checkAnew()
        break
      }
      this.#isFailing = false
    } catch (error) {
      this.#failed(error as Error)
    }
    this.#clock.settle()
  }

  /** The stream is read no further. */
  end(): void {
    this.#clock.end()
  }

  close(): void {
    this.#client.destroy()
  }

  async #readOn(): Promise<number> {
    const { stream } = this.#options
    const from = { key: stream, id: this.#lastId as string }
    const answer = (await this.#client.xRead(from, { COUNT: ENTRIES_PER_READ })) as
      | readonly { readonly messages: readonly { readonly id: string; readonly message: Readonly<Record<string, string>> }[] }[]
      | null
    const messages = answer?.[0]?.messages ?? []
    for (const { id, message } of messages) {
      this.#lastId = id
      this.#give(id, message)
    }
    return messages.length
  }

  #give(id: string, { key = '', cost = '1' }: Readonly<Record<string, string>>): void {
    this.entries++
    const tokens = Math.min(Number(cost), MOST_COST)
    if (key === '' || !Number.isInteger(tokens) || tokens < 1) {
      this.unreadable++
      return
    }
    this.#clock.add({ key: fittedKey(this.#networkOf(key) ?? key), cost: tokens }, Number(id.split('-')[0]))
  }

  /** A stream that was deleted and begun again on an earlier clock has entries before the last one that was read. */
  async #checkAnew(): Promise<void> {
    const newest = await this.#newestId()
    if (newest !== START && isBefore(newest, this.#lastId as string)) this.#lastId = START
  }

  async #newestId(): Promise<string> {
    const newest = await this.#client.xRevRange(this.#options.stream, '+', '-', { COUNT: 1 })
    return newest?.[0]?.id ?? START
  }

  #failed(error: Error): void {
    if (!this.#isFailing) this.#options.onNotice(`the stream ${this.#options.stream} cannot be read: ${error.message}`)
    this.#isFailing = true
  }
}

function isBefore(id: string, other: string): boolean {
  const [ms = 0, number = 0] = id.split('-').map(Number)
  const [otherMs = 0, otherNumber = 0] = other.split('-').map(Number)
  return ms < otherMs || (ms === otherMs && number < otherNumber)
}
