import type { Request } from '../cluster/message.js'
import { errorIn, type RequestLink } from '../cluster/primary-link.js'
import { PolicyError, StoreError } from '../errors.js'
import { newOperationId } from '../shared/backend.js'
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

/** A request without an answer yet. */
interface Pending {
  readonly resolve: (answer: readonly unknown[]) => void
  readonly reject: (error: StoreError) => void
}

interface Batch {
  readonly requests: Request[]
  readonly pending: Map<number, Pending>
}

/** Requests of one limiter to the objects of its keys: what one turn sends to one object is one subrequest. */
export class ObjectLink implements RequestLink {
  private readonly parts: ObjectLinkParts
  private readonly batches = new Map<string, Batch>()
  private sender: string | undefined

  constructor(parts: ObjectLinkParts) {
    this.parts = parts
  }

  request(id: number, verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      this.post([id, verb, ...args]).pending.set(id, { resolve, reject })
    })
  }

  tell(verb: string, ...args: readonly unknown[]): void {
    this.post([newOperationId(), verb, ...args])
  }

  /**
   * The object of a key. All keys of a take under `allOf` have one, or they could not be charged together.
   *
   * @throws {PolicyError} `KEY_INVALID`
   */
  objectOf(key: unknown): string {
    const { objectFor } = this.parts
    if (!Array.isArray(key)) return objectFor(key as string)
    const [first = '', ...others] = key.map((each) => objectFor(each))
    if (others.every((other) => other === first)) return first
    throw new PolicyError('KEY_INVALID', 'key', key, 'has keys of several objects: give objectFor, which names one object for all of them')
  }

  private post(request: Request): Batch {
    const object = this.objectOf(request[2])
    let batch = this.batches.get(object)
    if (batch === undefined || batch.requests.length === MOST_TOGETHER) {
      const made: Batch = { requests: [], pending: new Map() }
      batch = made
      this.batches.set(object, made)
      queueMicrotask(() => {
        if (this.batches.get(object) === made) this.batches.delete(object)
        this.parts.waitUntil(this.send(object, made))
      })
    }
    batch.requests.push(request)
    return batch
  }

  /** Settles all of them, and never rejects. Its timer belongs to the same request as the call, so that neither outlives the other. */
  private async send(object: string, { requests, pending }: Batch): Promise<void> {
    const timer = setTimeout(() => rejectAll(pending, new StoreError('OUTAGE', 'the object did not answer in time')), this.parts.timeoutMs)
    try {
      for (const answer of await this.answers(object, requests)) settle(pending, answer)
      rejectAll(pending, undefined)
    } catch (error) {
      rejectAll(pending, error)
    } finally {
      clearTimeout(timer)
    }
  }

  private async answers(object: string, requests: readonly Request[]): Promise<readonly (readonly unknown[])[]> {
    const { namespace, name } = this.parts
    // A random number is refused outside of requests.
    this.sender ??= crypto.randomUUID()
    const stub = namespace.get(namespace.idFromName(`${name}\n${object}`) as never)
    const response = await stub.fetch('https://limiter/', { method: 'POST', body: requestBody({ name, requests, sender: this.sender }) })
    if (response.ok) return answersIn(await response.json())
    throw new StoreError('OUTAGE', `the object answered ${response.status}: ${await response.text()}`)
  }
}

function rejectAll(pending: Map<number, Pending>, cause: unknown): void {
  if (pending.size === 0) return
  const error = cause instanceof StoreError ? cause : new StoreError('OUTAGE', 'the object gave no answer', { cause })
  for (const { reject } of pending.values()) reject(error)
  pending.clear()
}

function settle(pending: Map<number, Pending>, [id, ...content]: readonly unknown[]): void {
  const waiting = pending.get(id as number)
  pending.delete(id as number)
  if (typeof content[0] === 'string') waiting?.reject(errorIn(content))
  else waiting?.resolve(content)
}
