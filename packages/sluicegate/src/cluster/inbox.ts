import { PolicyError } from '../errors.js'
import { isKind, type Kind } from './message.js'
import type { ChannelEnd } from './worker-process.js'

/** Takes the messages about one policy. */
export type Receiver = (kind: Kind, content: readonly unknown[]) => void

/** Who receives, and whether only what was asked before: then whoever else wants the name may have it, too. */
interface Reception {
  readonly receiver: Receiver
  readonly isLeaving: () => boolean
}

const inboxes = new WeakMap<ChannelEnd, Inbox>()

/** What comes in at one end of a channel, by the policy that it is about: one listener for all. Other messages are others'. */
class Inbox {
  private readonly end: ChannelEnd
  /** Under each name one that stays at most, and those that are leaving: an answer is told to all, as only who asked knows its id. */
  private readonly receptions = new Map<unknown, Set<Reception>>()

  constructor(end: ChannelEnd) {
    this.end = end
  }

  add(name: string, reception: Reception): () => void {
    const together = this.receptions.get(name) ?? new Set()
    if (!reception.isLeaving() && [...together].some(({ isLeaving }) => !isLeaving())) {
      throw new PolicyError('NAME_INVALID', 'policy', name, 'is the name of another policy on this channel: give each a name of its own')
    }
    if (this.receptions.size === 0) this.end.on('message', this.listener)
    this.receptions.set(name, together.add(reception))
    return () => {
      together.delete(reception)
      if (together.size > 0 || this.receptions.get(name) !== together) return
      this.receptions.delete(name)
      if (this.receptions.size === 0) this.end.removeListener('message', this.listener)
    }
  }

  private readonly listener = (message: unknown): void => {
    if (!Array.isArray(message) || !isKind(message[0])) return
    const [kind, name, ...content] = message
    // Who is told may leave, or come back to ask once more: that is for the next message.
    for (const { receiver } of [...(this.receptions.get(name) ?? [])]) receiver(kind, content)
  }
}

/**
 * Receives what comes in at this end about a policy, until the function that it answers with is called.
 *
 * @param isLeaving whether it is only for what was asked before: one more may have the name then, and both receive.
 * @throws {PolicyError} `NAME_INVALID` when somebody else does already.
 */
export function receive(end: ChannelEnd, name: string, receiver: Receiver, isLeaving = () => false): () => void {
  let inbox = inboxes.get(end)
  if (inbox === undefined) {
    inbox = new Inbox(end)
    inboxes.set(end, inbox)
  }
  return inbox.add(name, { receiver, isLeaving })
}
