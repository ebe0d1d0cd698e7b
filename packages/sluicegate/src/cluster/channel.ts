import { PolicyError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'
import { ANSWER, isKind, type Kind, type Message, NAME_UNKNOWN, REQUESTS, refusalOf, refusalOfVersion, VERSION } from '../owner/message.js'

/** One end of a channel between two processes. */
export interface ChannelEnd {
  /** With a callback a channel that closes meanwhile is no error of the whole process. */
  send?(message: object, callback: (error: Error | null) => void): boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
}

/** A process that was started with a channel: a child process that was forked, or a worker of `node:cluster`. */
export interface WorkerProcess extends ChannelEnd {
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'exit', listener: () => void): unknown
}

/** In a process that was started with a channel: `process`. */
export interface ParentChannel extends ChannelEnd {
  readonly connected?: boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'disconnect', listener: () => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'disconnect', listener: () => void): unknown
}

/** The module `node:cluster` of a primary process. */
export interface PrimaryCluster {
  readonly workers?: Readonly<Record<string, WorkerProcess | undefined>> | undefined
  on(event: 'fork', listener: (worker: WorkerProcess) => void): unknown
  removeListener(event: 'fork', listener: (worker: WorkerProcess) => void): unknown
}

/** Receives the messages about one policy. */
export interface Reception {
  readonly receiver: (kind: Kind, content: readonly unknown[]) => void
  /** In a worker: the primary speaks another version of the protocol. */
  readonly onOtherVersion?: (version: unknown) => void
  /** Called when no more messages will come. */
  readonly onEnd: () => void
  /** Whether it only waits for earlier answers: then another receiver may use the name too. */
  readonly isLeaving?: () => boolean
}

const inboxes = /* @__PURE__ */ onceInProcess('inboxes', () => new WeakMap<object, Inbox>())

/** The messages at one end of a channel, by policy, with one listener for all policies. It ignores messages of other libraries. */
class Inbox {
  private readonly end: WorkerProcess
  private readonly isPrimary: boolean
  /** Of the other process. */
  private readonly endEvent: 'exit'
  /** For each name at most one that stays, and those that are leaving: each gets every answer, since only the asker knows its id. */
  private readonly receptions = new Map<unknown, Set<Reception>>()

  constructor(end: WorkerProcess | ParentChannel, isPrimary: boolean) {
    this.isPrimary = isPrimary
    // Each end is used only for the events that it has.
    this.end = end as WorkerProcess
    this.endEvent = (isPrimary ? 'exit' : 'disconnect') as 'exit'
  }

  add(name: string, reception: Reception): () => void {
    const together = this.receptions.get(name) ?? new Set()
    if (!isLeaving(reception) && [...together].some((other) => !isLeaving(other))) {
      throw new PolicyError(
        'NAME_INVALID',
        'policy',
        name,
        'has a limiter on this channel: use that one for all of the process, or give each policy a name of its own',
      )
    }
    if (this.receptions.size === 0) this.open()
    this.receptions.set(name, together.add(reception))
    return () => {
      together.delete(reception)
      if (together.size > 0 || this.receptions.get(name) !== together) return
      this.receptions.delete(name)
      if (this.receptions.size === 0) this.close()
    }
  }

  /** Answers a worker whose policy is not served here, or whose version is not spoken: it would wait in vain. */
  private refuse(name: unknown, version: unknown, requests: unknown): void {
    if (typeof name !== 'string') return
    const served = [...this.receptions.keys()].map((each) => JSON.stringify(each)).join(', ')
    const why = `the primary serves no policy ${JSON.stringify(name)}; it serves: ${served}`
    const answers = version === VERSION ? refusalOf(requests, NAME_UNKNOWN, why) : refusalOfVersion(requests, version)
    const message: Message = [ANSWER, name, VERSION, answers]
    if (answers.length > 0) this.end.send?.(message, () => undefined)
  }

  private open(): void {
    this.end.on('message', this.onMessage)
    this.end.on(this.endEvent, this.onEnd)
  }

  private close(): void {
    this.end.removeListener('message', this.onMessage)
    this.end.removeListener(this.endEvent, this.onEnd)
  }

  private readonly onEnd = (): void => {
    for (const { onEnd } of [...this.receptions.values()].flatMap((together) => [...together])) onEnd()
  }

  private readonly onMessage = (message: unknown): void => {
    if (!Array.isArray(message) || !isKind(message[0])) return
    const [kind, name, version, ...content] = message
    if (typeof version !== 'number') return
    const isOther = version !== VERSION
    if (this.isPrimary && kind === REQUESTS && (isOther || !this.receptions.has(name))) this.refuse(name, version, content[0])
    // A receiver may leave or come back during the call: that counts for the next message.
    for (const { receiver, onOtherVersion } of [...(this.receptions.get(name) ?? [])]) {
      if (isOther) onOtherVersion?.(version)
      else receiver(kind, content)
    }
  }
}

/**
 * In a primary: receives a worker's messages about a policy until the returned function is called.
 *
 * @throws {PolicyError} `NAME_INVALID` when another receiver has the name.
 */
export function receiveFromWorker(worker: WorkerProcess, name: string, reception: Reception): () => void {
  return inboxOf(worker, true).add(name, reception)
}

/** The same in a worker, for its primary's messages. */
export function receiveFromPrimary(channel: ParentChannel, name: string, reception: Reception): () => void {
  return inboxOf(channel, false).add(name, reception)
}

function inboxOf(end: WorkerProcess | ParentChannel, isPrimary: boolean): Inbox {
  let inbox = inboxes.get(end)
  if (inbox === undefined) {
    inbox = new Inbox(end, isPrimary)
    inboxes.set(end, inbox)
  }
  return inbox
}

function isLeaving(reception: Reception): boolean {
  return reception.isLeaving?.() ?? false
}
