import type { WaitRequest } from '../wait-request.js'
import { Chain, type Place } from '../waiting/chain.js'

/** Somebody who stands in a {@link WaitingQueue}. */
export interface QueueMember {
  /** What a sleeping member is woken by. */
  readonly own: symbol
  readonly request: WaitRequest
  /** Its place in the order of arrival. */
  readonly arrival: number
}

/** What the first of a line was told when it asked last: the reading from which on it would pass. */
export interface QueueDenial {
  readonly atMs: number
}

/** Those who stand in line for a key in this process, in the order of arrival. */
export class WaitingQueue {
  /** What all of them want together. */
  tokens = 0
  denied: QueueDenial | undefined
  private readonly members = new Chain<QueueMember>()

  get first(): QueueMember | undefined {
    return this.members.first?.item
  }

  /** Behind those who came before it: whoever was first, and has to ask anew, is first again. */
  add(member: QueueMember): Place<QueueMember> {
    const { arrival, request } = member
    this.tokens += request.cost
    const { first, last } = this.members
    if (first === undefined || last === undefined || last.item.arrival < arrival) return this.members.add(member)
    let before: Place<QueueMember> | undefined
    for (let next: Place<QueueMember> | undefined = first; next !== undefined && next.item.arrival < arrival; next = next.after)
      before = next
    return this.members.insert(member, before)
  }

  remove(place: Place<QueueMember>): void {
    if (this.first === place.item) this.denied = undefined
    this.tokens -= place.item.request.cost
    this.members.remove(place)
  }
}
