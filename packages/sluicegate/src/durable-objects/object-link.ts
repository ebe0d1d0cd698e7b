import { PolicyError, StoreError } from '../errors.js'
import { Link } from '../owner/link.js'
import type { Request } from '../owner/message.js'
import { answersIn, requestBody } from './object-message.js'
import type { ObjectNamespace } from './object-types.js'

/** Requests in one message, which an object carries out in one step. */
const MOST_TOGETHER = 1_000

/** What {@link ObjectLink} is made of. */
export interface ObjectLinkParts {
  readonly namespace: ObjectNamespace
  /** Of the policy. */
  readonly name: string
  readonly objectFor: (key: string) => string
  readonly waitUntil: (promise: Promise<unknown>) => void
  readonly timeoutMs: number
}

/** Requests of one limiter to the objects of its keys: what one turn sends to one object is one subrequest. */
export class ObjectLink extends Link {
  private readonly parts: ObjectLinkParts
  private sender: string | undefined

  constructor(parts: ObjectLinkParts) {
    super(MOST_TOGETHER)
    this.parts = parts
  }

  /**
   * The object of a key. All keys of a take under `allOf` have one, or they could not be charged together.
   *
   * @throws {PolicyError} `KEY_INVALID`
   */
  protected override placeOf(key: unknown): string {
    const { objectFor } = this.parts
    if (!Array.isArray(key)) return objectFor(key as string)
    const [first = '', ...others] = key.map((each) => objectFor(each))
    if (others.every((other) => other === first)) return first
    throw new PolicyError('KEY_INVALID', 'key', key, 'has keys of several objects: give objectFor, which names one object for all of them')
  }

  protected override atEndOfTurn(send: () => void): void {
    queueMicrotask(send)
  }

  /** Each message settles all its requests, in time. */
  protected override nowMs(): number {
    return 0
  }

  protected override send(object: string, requests: readonly Request[]): void {
    this.parts.waitUntil(this.sent(object, requests))
  }

  /** Never rejects. Its timer belongs to the same request as the call, so that neither outlives the other. */
  private async sent(object: string, requests: readonly Request[]): Promise<void> {
    // An error costs as much as the rest of a message: none is made that is not needed.
    const late = (): StoreError => new StoreError('OUTAGE', 'the object did not answer in time')
    const timer = setTimeout(() => this.unanswered(late(), requests), this.parts.timeoutMs)
    try {
      this.answered(await this.answers(object, requests))
      if (this.isUnanswered(requests)) this.unanswered(new StoreError('OUTAGE', 'the object gave no answer'), requests)
    } catch (cause) {
      this.unanswered(cause instanceof StoreError ? cause : new StoreError('OUTAGE', 'the object gave no answer', { cause }), requests)
    } finally {
      clearTimeout(timer)
    }
  }

  private async answers(object: string, requests: readonly Request[]): Promise<readonly unknown[]> {
    const { namespace, name } = this.parts
    // A random number is refused outside of requests.
    this.sender ??= crypto.randomUUID()
    const stub = namespace.get(namespace.idFromName(`${name}\n${object}`) as never)
    const response = await stub.fetch('https://limiter/', { method: 'POST', body: requestBody({ name, requests, sender: this.sender }) })
    if (response.ok) return answersIn(await response.json())
    throw new StoreError('OUTAGE', `the object answered ${response.status}: ${await response.text()}`)
  }
}
