import { StoreError } from '../errors.js'
import { NAME_UNKNOWN, type Request, VERSION_UNKNOWN } from './message.js'

/** Answers after so long are dropped. */
const LATEST_MS = 60_000
/** Requests without an answer; more are refused at once, so that an owner that has stopped cannot fill the memory of this process. */
const MOST_PENDING = 1_000_000

/** A request without an answer yet. */
interface Pending {
  readonly untilMs: number
  readonly resolve: (answer: readonly unknown[]) => void
  readonly reject: (error: StoreError) => void
}

/** Requests of one limiter to where its state is: all that a turn sends to one place are one message. */
export abstract class Link {
  private readonly pending = new Map<number, Pending>()
  private readonly batches = new Map<string, Request[]>()
  private readonly mostTogether: number

  constructor(mostTogether: number) {
    this.mostTogether = mostTogether
  }

  /** Resolves with the answer without its id. Rejects with `StoreError`. */
  request(request: Request): Promise<readonly unknown[]> {
    if (this.pending.size >= MOST_PENDING) return Promise.reject(new StoreError('OUTAGE', 'too many requests have no answer'))
    return new Promise((resolve, reject) => {
      const nowMs = this.nowMs()
      for (const [id, { untilMs }] of this.pending) {
        if (untilMs > nowMs) break
        this.pending.delete(id)
      }
      this.post(request)
      this.pending.set(request[0], { untilMs: nowMs + LATEST_MS, resolve, reject })
    })
  }

  /** Sends a request whose answer is not needed. */
  tell(request: Request): void {
    this.post(request)
  }

  /** Takes answers; ignores what is none. */
  protected answered(answers: readonly unknown[]): void {
    for (const answer of answers) {
      if (!Array.isArray(answer)) continue
      const [id, ...content] = answer
      if (content[0] === NAME_UNKNOWN || content[0] === VERSION_UNKNOWN) this.refused(content[0], String(content[1]))
      const waiting = this.taken(id)
      if (typeof content[0] === 'string') waiting?.reject(errorIn(content))
      else waiting?.resolve(content)
    }
  }

  /** These requests, or all, get no answer. */
  protected unanswered(error: StoreError, requests?: readonly Request[]): void {
    const ids = requests?.map(([id]) => id) ?? [...this.pending.keys()]
    for (const id of ids) this.taken(id)?.reject(error)
  }

  protected isUnanswered(requests: readonly Request[]): boolean {
    return requests.some(([id]) => this.pending.has(id))
  }

  protected get isIdle(): boolean {
    return this.pending.size === 0
  }

  private taken(id: number): Pending | undefined {
    const waiting = this.pending.get(id)
    this.pending.delete(id)
    return waiting
  }

  private post(request: Request): void {
    const place = this.placeOf(request[2])
    const batch = this.batches.get(place)
    if (batch !== undefined && batch.length < this.mostTogether) {
      batch.push(request)
      return
    }
    const made = [request]
    this.batches.set(place, made)
    this.atEndOfTurn(() => {
      if (this.batches.get(place) === made) this.batches.delete(place)
      this.send(place, made)
    })
  }

  protected abstract nowMs(): number
  /** Where a key is. */
  protected abstract placeOf(key: unknown): string
  protected abstract atEndOfTurn(send: () => void): void
  protected abstract send(place: string, requests: readonly Request[]): void
  /** The owner does not know the policy, or this version. */
  protected refused(_code: string, _why: string): void {}
}

/** The owner's refusal keeps its code; any other error is an outage. */
function errorIn([code, message]: readonly unknown[]): StoreError {
  const known = code === 'CONTENTION' || code === 'TABLE_FULL' ? code : 'OUTAGE'
  return new StoreError(known, `the owner: ${code}: ${message}`)
}
