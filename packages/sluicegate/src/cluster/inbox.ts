import { PolicyError } from '../errors.js'
import { isKind, type Kind } from './message.js'
import type { ChannelEnd } from './worker-process.js'

/** Takes the messages about one policy. */
export type Receiver = (kind: Kind, content: readonly unknown[]) => void

const inboxes = new WeakMap<ChannelEnd, Inbox>()

/** What comes in at one end of a channel, by the policy that it is about: one listener for all. Other messages are others'. */
class Inbox {
  private readonly end: ChannelEnd
  private readonly receivers = new Map<unknown, Receiver>()

  constructor(end: ChannelEnd) {
    this.end = end
  }

  add(name: string, receiver: Receiver): () => void {
    if (this.receivers.has(name)) {
      throw new PolicyError('NAME_INVALID', 'policy', name, 'is the name of another policy on this channel: give each a name of its own')
    }
    if (this.receivers.size === 0) this.end.on('message', this.listener)
    this.receivers.set(name, receiver)
    return () => {
      if (this.receivers.get(name) !== receiver) return
      this.receivers.delete(name)
      if (this.receivers.size === 0) this.end.removeListener('message', this.listener)
    }
  }

  private readonly listener = (message: unknown): void => {
    if (!Array.isArray(message) || !isKind(message[0])) return
    const [kind, name, ...content] = message
    this.receivers.get(name)?.(kind, content)
  }
}

/**
 * Receives what comes in at this end about a policy, until the function that it answers with is called.
 *
 * @throws {PolicyError} `NAME_INVALID` when somebody else does already.
 */
export function receive(end: ChannelEnd, name: string, receiver: Receiver): () => void {
  let inbox = inboxes.get(end)
  if (inbox === undefined) {
    inbox = new Inbox(end)
    inboxes.set(end, inbox)
  }
  return inbox.add(name, receiver)
}
